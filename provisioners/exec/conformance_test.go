package exec_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/exec"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
)

func testOffers() []exec.Offer {
	big := exec.Offer{
		Type: "big", Region: "here", Model: "h100", GPUs: 8, MemoryMiB: 81_920,
		Price:      provisioners.Price(20 * money.USD),
		MinBilling: time.Minute, Boot: exec.Boot{P50: time.Minute, P95: 2 * time.Minute}, Interruptible: true,
		Notice: warning,
	}
	small := big
	small.Type, small.GPUs = "small", 1
	return []exec.Offer{big, small}
}

func testConfig(t *testing.T, w world) exec.Config {
	// The race detector waits for a second at the end of every process.
	return exec.Config{Command: []string{"env", "GORACE=atexit_sleep_ms=0", ownExecutable(t), "script", w.folder},
		Renews: true,
		Offers: testOffers()}
}

func openScripts(t *testing.T, c exec.Config) provisioners.Provisioner {
	t.Helper()
	p, err := exec.New(c, clock.System{})
	require.NoError(t, err)
	return p
}

func TestConformance(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: func(t *testing.T) provisionertest.Subject {
		w := newWorld(t)
		once := func(verb, effect string) func() {
			return func() { w.injectFaults(fault{Verb: verb, Effect: effect, Times: 1}) }
		}
		return provisionertest.Subject{
			Provisioner: openScripts(t, testConfig(t, w)),
			Reopen:      func(t *testing.T) provisioners.Provisioner { return openScripts(t, testConfig(t, w)) },
			Spec:        provisioners.Spec{Type: "big", Region: "here"},
			OtherSpec:   provisioners.Spec{Type: "small", Region: "here"},
			Machines:    100, Advance: w.advanceClock, BootWithin: boot, GoneWithin: time.Minute,
			TimeOutCreate: once("create", dieAfter),
			TimeOutDelete: once("delete", dieAfter),
			TruncateList:  once("list", garble),
			RunOut:        func() { w.injectFaults(fault{Verb: "create", Effect: noCapacity, Times: -1}) },
			FailCreate:    once("create", transient),
			FailDelete:    once("delete", dieBefore),
			IgnoreDelete:  once("delete", lie),
			Throttle:      w.throttleCalls,
			LagList:       func(lag time.Duration) { w.updateState(func(s *state) { s.Lag = lag }) },
			Foreign:       w.createForeign,
			Reclaim: func(id string) {
				w.updateState(func(s *state) {
					if m := s.findMachine(id); m != nil && m.Reclaim.IsZero() {
						m.Reclaim = s.Now.Add(warning)
					}
				})
			},
			Now: func() (now time.Time) {
				w.updateState(func(s *state) { now = s.Now })
				return now
			},
			Histories: 2, // some thousand processes
		}
	}})
}

// throttleCalls makes each kind of call fail that often; 0 takes back what is left.
func (w world) throttleCalls(calls int) {
	if calls == 0 {
		w.updateState(func(s *state) { s.Faults = nil })
		return
	}
	for _, verb := range []string{"create", "get", "list", "delete"} {
		w.injectFaults(fault{Verb: verb, Effect: throttled, Times: calls})
	}
}
