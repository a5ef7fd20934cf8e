package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/health"
	"github.com/forewarm/forewarm/node/burnin"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/watch"
)

var begin = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// scripted is a source that says what it is told to.
type scripted struct {
	reading gpu.Reading
	err     error
}

func (s *scripted) Look(context.Context) (gpu.Reading, error) { return s.reading, s.err }
func (s *scripted) Close()                                    {}

func twoGPUs() gpu.Reading {
	return gpu.Reading{Look: contract.NodeLook{Source: "nvml", GPUs: []contract.LookGPU{
		{UUID: "GPU-a", PCI: "0000:3b:00", Index: 0, Model: "A100"},
		{UUID: "GPU-b", PCI: "0000:3c:00", Index: 1, Model: "A100"}}}}
}

func healths(l contract.NodeLook) map[string]string {
	out := map[string]string{}
	for _, g := range l.GPUs {
		out[g.UUID] = g.Health
	}
	return out
}

// A lost GPU can no longer be asked: what is known of it comes from before, over a restart
// of the daemon, too, and not over a boot.
func TestALostGPU(t *testing.T) {
	t.Parallel()
	source := &scripted{reading: twoGPUs()}
	w := watch.New(source, nil, health.Policy{}, watch.Memory{}.For("boot"))
	require.Equal(t, map[string]string{"GPU-a": "healthy", "GPU-b": "healthy"}, healths(w.Look(t.Context(), begin)))
	source.reading.Look.GPUs = source.reading.Look.GPUs[:1]
	look := w.Look(t.Context(), begin.Add(10*time.Second))
	require.Equal(t, map[string]string{"GPU-a": "healthy", "GPU-b": "unhealthy"}, healths(look))
	require.True(t, look.GPUs[1].Lost)
	require.Equal(t, "0000:3c:00", look.GPUs[1].PCI)
	require.Equal(t, health.RuleLost, look.GPUs[1].Evidence[0].Rule)

	text, err := json.Marshal(w.Memory())
	require.NoError(t, err)
	var stored watch.Memory
	require.NoError(t, json.Unmarshal(text, &stored))
	source.reading = twoGPUs()
	w = watch.New(source, nil, health.Policy{}, stored.For("boot"))
	require.Equal(t, "unhealthy", healths(w.Look(t.Context(), begin.Add(time.Hour)))["GPU-b"], "silence mends nothing")
	w.Clear(1, begin.Add(2*time.Hour))
	require.Equal(t, "healthy", healths(w.Look(t.Context(), begin.Add(2*time.Hour)))["GPU-b"], "an operator does")
	w = watch.New(source, nil, health.Policy{}, stored.For("next boot"))
	require.Equal(t, "healthy", healths(w.Look(t.Context(), begin.Add(time.Hour)))["GPU-b"], "and so does a boot")
}

// tests is a tester that answers, and says what it was asked.
type tests struct {
	asked  [][]string
	answer burnin.Result
}

func (s *tests) Test(_ context.Context, uuids []string) (map[string]burnin.Result, error) {
	s.asked = append(s.asked, uuids)
	all := map[string]burnin.Result{}
	for _, uuid := range uuids {
		all[uuid] = s.answer
	}
	return all, nil
}

// A GPU is tested once in a boot, unless somebody uses it, and anew when an operator clears it. One that failed is not
// to be handed out.
func TestGPUsAreTestedOnce(t *testing.T) {
	t.Parallel()
	reading := twoGPUs()
	reading.Look.GPUs = append(reading.Look.GPUs, contract.LookGPU{UUID: "GPU-c", GPUTelemetry: contract.GPUTelemetry{
		Processes: gpu.Of(2)}})
	source := &scripted{reading: reading}
	w := watch.New(source, nil, health.Policy{}, watch.Memory{}.For("boot"))
	require.False(t, w.BurnIn(t.Context(), w.Look(t.Context(), begin), nil), "nobody tests")
	tester := &tests{answer: burnin.Result{State: burnin.Failed, Detail: "a word differs"}}
	w.TestWith(tester)
	look := w.Look(t.Context(), begin)
	require.True(t, w.BurnIn(t.Context(), look, []string{"GPU-b"}))
	require.Equal(t, [][]string{{"GPU-a"}}, tester.asked)
	look = w.Look(t.Context(), begin)
	require.Equal(t, map[string]string{"GPU-a": "unhealthy", "GPU-b": "healthy", "GPU-c": "healthy"}, healths(look))
	require.Equal(t, "two tests of its memory failed: a word differs", look.GPUs[0].Evidence[0].Detail)
	require.Equal(t, &contract.BurnIn{State: "skipped", Detail: "it was held"}, look.GPUs[1].BurnIn)
	require.Equal(t, &contract.BurnIn{State: "skipped", Detail: "2 processes were on it"}, look.GPUs[2].BurnIn)
	require.False(t, w.BurnIn(t.Context(), look, nil))

	tester.answer = burnin.Result{State: burnin.Passed, Detail: "all of it"}
	w.Clear(1, begin)
	require.True(t, w.BurnIn(t.Context(), look, nil))
	require.Equal(t, []string{"GPU-a", "GPU-b"}, tester.asked[1])
	look = w.Look(t.Context(), begin)
	require.Equal(t, "healthy", look.GPUs[0].Health)
	require.Equal(t, &contract.BurnIn{State: "passed", Detail: "all of it"}, look.GPUs[0].BurnIn)
	again := watch.New(source, nil, health.Policy{}, w.Memory().Copy().For("boot"))
	again.TestWith(tester)
	require.False(t, again.BurnIn(t.Context(), again.Look(t.Context(), begin), nil), "another daemon of the same boot")
	next := watch.New(source, nil, health.Policy{}, w.Memory().Copy().For("next boot"))
	next.TestWith(tester)
	require.True(t, next.BurnIn(t.Context(), next.Look(t.Context(), begin), nil))
}

// What a simulated GPU says of its use is no work of anybody's.
func TestSimulatedGPUsAreTested(t *testing.T) {
	t.Parallel()
	w := watch.New(&gpu.Simulated{Seed: "x", Count: 8}, nil, health.Policy{}, watch.Memory{}.For("boot"))
	w.TestWith(burnin.Tester{Prober: burnin.Simulated{}})
	require.True(t, w.BurnIn(t.Context(), w.Look(t.Context(), begin), nil))
	for _, g := range w.Look(t.Context(), begin).GPUs {
		require.Equal(t, "passed", g.BurnIn.State)
		require.Contains(t, g.BurnIn.Detail, "SIM")
	}
}

func TestAClearIsFollowedOnce(t *testing.T) {
	t.Parallel()
	source := &scripted{reading: twoGPUs()}
	source.reading.Look.GPUs[0].Recovery = "reset"
	w := watch.New(source, nil, health.Policy{}, watch.Memory{Clears: 3}.For("boot"))
	w.Look(t.Context(), begin)
	w.Clear(3, begin)
	require.Equal(t, health.Unhealthy, w.Memory().Tracks["GPU-a"].State, "it was followed before")
	w.Clear(4, begin)
	require.Equal(t, health.Unknown, w.Memory().Tracks["GPU-a"].State)
	require.Equal(t, 4, w.Memory().Clears)
	require.Equal(t, 4, w.Memory().For("next").Clears)
}

// The driver hangs: the GPUs are unknown after three looks, and what the kernel's log says
// of them counts all the same.
func TestLooksThatFail(t *testing.T) {
	t.Parallel()
	source := &scripted{reading: twoGPUs()}
	w := watch.New(source, nil, health.Policy{}, watch.Memory{}.For("boot"))
	w.Look(t.Context(), begin)
	source.err = errors.New("the driver did not answer within 10s")
	source.reading.Events = []gpu.Event{{PCI: "0000:3c:00", Code: 119, Count: 1}}
	w.Look(t.Context(), begin.Add(10*time.Second))
	source.reading.Events = nil
	w.Look(t.Context(), begin.Add(20*time.Second))
	look := w.Look(t.Context(), begin.Add(30*time.Second))
	require.Equal(t, "none", look.Source)
	require.Contains(t, look.Problem, "did not answer")
	require.Equal(t, "unknown", healths(look)["GPU-a"])
	source.err, source.reading = nil, twoGPUs()
	require.Equal(t, map[string]string{"GPU-a": "healthy", "GPU-b": "unhealthy"},
		healths(w.Look(t.Context(), begin.Add(40*time.Second))))
}

// A storm of XIDs of one program on all GPUs blames none of them; one on a single GPU does.
func TestXIDsFindTheirGPU(t *testing.T) {
	t.Parallel()
	source := &scripted{reading: twoGPUs()}
	w := watch.New(source, nil, health.Policy{}, watch.Memory{}.For("boot"))
	source.reading.Events = []gpu.Event{{UUID: "GPU-a", Code: 31, Count: 5000}, {PCI: "0000:3c:00", Code: 31, Count: 5000},
		{PCI: "0000:ff:00", Code: 79, Count: 1}}
	look := w.Look(t.Context(), begin)
	require.Equal(t, map[string]string{"GPU-a": "healthy", "GPU-b": "healthy"}, healths(look))
	require.Equal(t, []contract.XID{{Code: 31, Count: 5000}}, look.GPUs[1].XIDs)
	source.reading.Events = []gpu.Event{{UUID: "GPU-a", Code: 13, Count: 2}}
	require.Equal(t, map[string]string{"GPU-a": "degraded", "GPU-b": "healthy"},
		healths(w.Look(t.Context(), begin.Add(10*time.Second))))
}

// XIDs are counted over the daemon's restarts, not over boots, and where nothing tells of them there is no count.
func TestXIDsAreCounted(t *testing.T) {
	t.Parallel()
	source := &scripted{reading: twoGPUs()}
	w := watch.New(source, nil, health.Policy{}, watch.Memory{}.For("boot"))
	require.Nil(t, w.Look(t.Context(), begin).GPUs[0].XIDCount, "nobody tells")
	source.reading.HearsXIDs = true
	require.Zero(t, *w.Look(t.Context(), begin).GPUs[0].XIDCount)
	source.reading.Events = []gpu.Event{{UUID: "GPU-a", Code: 31, Count: 2}, {UUID: "GPU-a", Code: 43, Count: 1}}
	look := w.Look(t.Context(), begin)
	require.Equal(t, int64(3), *look.GPUs[0].XIDCount)
	require.Equal(t, 43, *look.GPUs[0].LastXID)
	require.Zero(t, *look.GPUs[1].XIDCount)
	require.Nil(t, look.GPUs[1].LastXID)
	source.err = errors.New("the driver hangs")
	w.Look(t.Context(), begin)

	text, err := json.Marshal(w.Memory())
	require.NoError(t, err)
	var stored watch.Memory
	require.NoError(t, json.Unmarshal(text, &stored))
	source.err, source.reading.Events = nil, nil
	w = watch.New(source, nil, health.Policy{}, stored.For("boot"))
	require.Equal(t, int64(6), *w.Look(t.Context(), begin).GPUs[0].XIDCount, "also those of a look that failed")
	w = watch.New(source, nil, health.Policy{}, stored.For("another boot"))
	require.Zero(t, *w.Look(t.Context(), begin).GPUs[0].XIDCount)
}

// What a DCGM exporter says of the last XID gives way to what the daemon saw itself.
func TestTheLastXIDOfAnExporter(t *testing.T) {
	t.Parallel()
	source := &scripted{reading: twoGPUs()}
	for i := range source.reading.Look.GPUs {
		source.reading.Look.GPUs[i].LastXID = gpu.Of(63)
		source.reading.Look.GPUs[i].FromDCGM = []string{"last_xid", "power_watts"}
	}
	source.reading.Events = []gpu.Event{{UUID: "GPU-a", Code: 31, Count: 1}}
	w := watch.New(source, nil, health.Policy{}, watch.Memory{}.For("boot"))
	w.Look(t.Context(), begin) // which learns of the GPUs
	all := w.Look(t.Context(), begin).GPUs
	require.Equal(t, 31, *all[0].LastXID)
	require.Equal(t, []string{"power_watts"}, all[0].FromDCGM)
	require.Equal(t, 63, *all[1].LastXID)
	require.Equal(t, []string{"last_xid", "power_watts"}, all[1].FromDCGM)
}
