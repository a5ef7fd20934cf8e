package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/internal/keys"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server"
)

// history is what a key's holder reads of the day of a GPU.
func (f *fleet) history(key, uuid, query string) contract.GPUHistory {
	f.t.Helper()
	return ask[contract.GPUHistory](f.world, key, http.MethodGet, "/v1/gpus/"+uuid+"/history"+query, "")
}

// report has the daemon of the first node say every ten seconds for a while that its GPUs are busy, each to so
// many percent more than the one before it.
func (f *fleet) report(seq *int64, percent int, length time.Duration) {
	f.t.Helper()
	for ; length > 0; length -= 10 * time.Second {
		*seq++
		f.sendBeat("daemon", 0, f.beat(0, 1, *seq, "healthy", func(b *contract.Heartbeat) {
			for g := range b.Look.GPUs {
				b.Look.GPUs[g].GPUTelemetry = contract.GPUTelemetry{Utilization: new(percent + g), Power: new(100.5)}
			}
		}))
		f.clock.Advance(10 * time.Second)
	}
}

// startOn is the time at which a series of five minutes begins, to which the clock is moved.
func (f *fleet) startOn() time.Time {
	f.clock.Set(f.clock.Now().Truncate(5 * time.Minute).Add(5 * time.Minute))
	return f.clock.Now()
}

// Each report counts, whether it is written down or not, and time in which none came is told as such.
func TestTheDayOfAGPU(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	uuid, start, seq := f.nodes[0].ID+"-gpu1", f.startOn(), int64(0)
	require.Empty(t, f.history("root", uuid, "").Items)
	f.report(&seq, 9, 2*time.Minute+30*time.Second)
	f.report(&seq, 29, 2*time.Minute+30*time.Second)
	f.report(&seq, 49, 5*time.Minute)
	f.clock.Advance(5 * time.Minute)
	f.report(&seq, 69, 10*time.Second)
	step := func(at time.Duration, mean, most int) contract.GPUHistoryStep {
		return contract.GPUHistoryStep{Start: start.Add(at), UtilizationMean: &mean, UtilizationMax: &most,
			PowerMean: new(100.5)}
	}
	got := f.history("root", uuid, "")
	require.Equal(t, contract.GPUHistory{UUID: uuid, Since: f.clock.Now().Add(-24 * time.Hour), StepSeconds: 300,
		Items: []contract.GPUHistoryStep{step(0, 20, 30), step(5*time.Minute, 50, 50),
			{Start: start.Add(10 * time.Minute)}, step(15*time.Minute, 70, 70)}}, got)
	since := "since=" + start.UTC().Format(time.RFC3339)
	whole := f.history("root", uuid, "?"+since)
	require.Equal(t, got.Items, whole.Items)
	require.False(t, whole.Complete, "nothing came in five minutes")
	require.True(t, f.history("root", uuid, "?since="+start.Add(15*time.Minute).Format(time.RFC3339)).Complete)
	require.Equal(t, []contract.GPUHistoryStep{{Start: start.Truncate(time.Hour), UtilizationMean: new(47),
		UtilizationMax: new(70), PowerMean: new(100.5)}}, f.history("root", uuid, "?step_seconds=3600&"+since).Items)

	require.Empty(t, f.history("root", f.nodes[1].ID+"-gpu1", "").Items, "no daemon reports there")
	path := "/v1/gpus/" + uuid + "/history"
	require.Equal(t, contract.CodeNotFound, f.refuse("root", http.MethodGet, "/v1/gpus/GPU-none/history", "").Code)
	for query, field := range map[string]string{"?step_seconds=301": "step_seconds", "?step_seconds=0": "step_seconds",
		"?step_seconds=172800":        "step_seconds",
		"?since=2126-01-01T00:00:00Z": "since", "?since=yesterday": "since"} {
		refused := f.refuse("root", http.MethodGet, path+query, "")
		require.Equal(t, contract.CodeInvalidParameter, refused.Code, query)
		require.Equal(t, field, refused.Errors[0].Pointer, query)
	}

	f.report(&seq, 10, 10*time.Second)
	f.clock.Advance(25 * time.Hour)
	require.Empty(t, f.history("root", uuid, "").Items, "it is forgotten with what the daemon said")
}

// A tenant sees of a GPU that it holds what it did since then: what others did with it before is theirs.
func TestTenantsSeeTheDayOfTheirHold(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.createTenant("theirs")
	f.createKey("member", "member")
	slices.Reverse(f.nodes) // the first slot is handed out first
	f.join(0, "boot", "daemon")
	start, seq := f.startOn(), int64(0)
	f.report(&seq, 80, 7*time.Minute)
	held := ask[contract.Allocation](f.world, "member", http.MethodPost, "/v1/allocations",
		`{"pool":"lab","gpus":1}`, "Idempotency-Key", "ours")
	theirs := ask[contract.Allocation](f.world, "theirs", http.MethodPost, "/v1/allocations", `{"pool":"lab","gpus":1}`,
		"Idempotency-Key", "theirs")
	require.Equal(t, f.nodes[0].ID, held.Devices[0].NodeID)
	require.Equal(t, f.nodes[0].ID, theirs.Devices[0].NodeID)
	uuid, other := held.Devices[0].UUID, theirs.Devices[0].UUID
	f.report(&seq, 0, 8*time.Minute)

	all := f.history("root", uuid, "")
	require.Len(t, all.Items, 3)
	require.GreaterOrEqual(t, *all.Items[1].UtilizationMax, 80)
	for _, query := range []string{"", "?since=" + start.Add(-time.Hour).Format(time.RFC3339), "?step_seconds=3600"} {
		got := f.history("member", uuid, query)
		require.Equal(t, start.Add(7*time.Minute), got.Since, query)
		require.Len(t, got.Items, 1, query)
		require.Less(t, *got.Items[0].UtilizationMax, 80, "nothing of before, nor of the five minutes of both")
		require.True(t, got.Complete, query)
	}
	for _, unseen := range []string{other, f.nodes[1].ID + "-gpu0"} {
		require.Equal(t, contract.CodeNotFound,
			f.refuse("member", http.MethodGet, "/v1/gpus/"+unseen+"/history", "").Code)
	}
	ask[contract.Allocation](f.world, "member", http.MethodPost, "/v1/allocations/"+held.ID+"/release", "",
		"Idempotency-Key", "over")
	f.runDueTasks(contract.Pool{})
	require.Equal(t, contract.CodeNotFound, f.refuse("member", http.MethodGet, "/v1/gpus/"+uuid+"/history", "").Code)
	require.NotEmpty(t, f.history("root", uuid, "").Items)
}

// Where everybody sees all GPUs, everybody sees their days.
func TestTenantsMaySeeAllDays(t *testing.T) {
	t.Parallel()
	f := newFleet(t, func(c *server.Config) {
		c.Ledger = verbs.New(c.Ledger.Store(), ids.UUID{}, ledger.Config{TenantsSeeNodes: true})
	})
	f.createKey("member", "member")
	f.join(0, "boot", "daemon")
	f.startOn()
	seq := int64(0)
	f.report(&seq, 80, 7*time.Minute)
	uuid := f.nodes[0].ID + "-gpu0"
	require.Len(t, f.history("member", uuid, "").Items, 2)
	require.Equal(t, f.history("root", uuid, ""), f.history("member", uuid, ""))
}

// A server tells what it was told itself, and whether another has been told since.
func TestEachServerKeepsWhatItWasTold(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	uuid, start, seq := f.nodes[0].ID+"-gpu0", f.startOn(), int64(0)
	f.report(&seq, 50, 5*time.Minute)
	first := f.server
	second, err := server.New(server.Config{Ledger: f.ledger, Clock: f.clock, Limits: unlimited,
		Peppers: []keys.Pepper{f.minter.Pepper}})
	require.NoError(t, err)
	f.handler = second
	got := f.history("root", uuid, "")
	require.Empty(t, got.Items)
	require.False(t, got.Complete)
	require.False(t, got.Elsewhere, "the server before it was told, and may have ended")

	f.report(&seq, 60, 5*time.Minute)
	got = f.history("root", uuid, "?since="+start.Add(5*time.Minute).Format(time.RFC3339))
	require.True(t, got.Complete)
	require.False(t, got.Elsewhere)
	f.handler = first
	got = f.history("root", uuid, "")
	require.Equal(t, []contract.GPUHistoryStep{{Start: start, UtilizationMean: new(50), UtilizationMax: new(50),
		PowerMean: new(100.5)}, {Start: start.Add(5 * time.Minute)}}, got.Items)
	require.True(t, got.Elsewhere)
	require.False(t, got.Complete)
	f.report(&seq, 70, 10*time.Second)
	got = f.history("root", uuid, "")
	require.Len(t, got.Items, 3)
	require.False(t, got.Elsewhere, "it came back")
}

// On a simulated node the daemon's GPUs stand for those of the same index, as elsewhere.
func TestTheDayOfASimulatedGPU(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	f.sendBeat("daemon", 0, f.beat(0, 1, 1, "healthy", func(b *contract.Heartbeat) {
		b.Look.Source = "simulated"
		for g := range b.Look.GPUs {
			b.Look.GPUs[g].UUID = fmt.Sprint("GPU-SIM-", g)
		}
	}))
	got := f.history("root", f.nodes[0].ID+"-gpu2", "")
	require.True(t, got.Simulated)
	require.Len(t, got.Items, 1)
	require.Equal(t, 21, *got.Items[0].UtilizationMean)
}
