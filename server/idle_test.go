package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server"
)

// holding is a fleet whose GPUs are all one allocation's, and whose daemons report.
type holding struct {
	*fleet
	id  string
	seq int64
}

func newHolding(t *testing.T, change ...func(*server.Config)) *holding {
	t.Helper()
	h := &holding{fleet: newFleet(t, change...)}
	h.join(0, "boot", "daemon")
	h.join(1, "boot", "daemon 1")
	h.id = ask[contract.Allocation](h.world, "root", http.MethodPost, "/v1/allocations",
		`{"pool":"lab","gpus":8,"lease_seconds":36000}`, "Idempotency-Key", "idle-told").ID
	return h
}

// report has the daemons tell that one of all GPUs is busy for so many percent of the time.
func (h *holding) report(busy int, change ...func(*contract.Heartbeat)) {
	h.t.Helper()
	h.seq++
	for i, key := range []string{"daemon", "daemon 1"} {
		idle := func(b *contract.Heartbeat) {
			for g := range b.Look.GPUs {
				b.Look.GPUs[g].Utilization = new(int)
			}
			*b.Look.GPUs[3].Utilization = busy
		}
		h.sendBeat(key, i, h.beat(i, 1, h.seq, "healthy", append([]func(*contract.Heartbeat){idle}, change...)...))
	}
}

// pass lets time go by in which the daemons report.
func (h *holding) pass(d, every time.Duration, change ...func(*contract.Heartbeat)) {
	h.t.Helper()
	for ; d > 0; d -= every {
		h.clock.Advance(every)
		h.report(0, change...)
	}
}

func (h *holding) shown() contract.Allocation {
	h.t.Helper()
	return ask[contract.Allocation](h.world, "root", http.MethodGet, "/v1/allocations/"+h.id, "")
}

// Whoever holds GPUs that do nothing is told since when and what that costs; what they do ends it.
func TestIdleGPUsAreTold(t *testing.T) {
	t.Parallel()
	h := newHolding(t)
	h.report(0)
	require.Zero(t, h.shown().IdleSince, "it has only begun")
	h.pass(30*time.Minute, time.Minute)
	got := h.shown()
	require.WithinDuration(t, got.ActiveAt, got.IdleSince, time.Minute)
	require.NotNil(t, got.IdleCost)
	require.Equal(t, "8.40", got.IdleCost.Amount, "half an hour of two nodes")
	require.Equal(t, "online", got.Access.Nodes[0].Daemon)
	listed := ask[contract.List[contract.Allocation]](h.world, "root", http.MethodGet, "/v1/allocations", "").Items
	require.Equal(t, got.IdleSince, listed[0].IdleSince)
	h.report(7)
	require.Zero(t, h.shown().IdleSince)
	h.pass(15*time.Minute, time.Minute)
	require.NotZero(t, h.shown().IdleSince)
	h.clock.Advance(5 * time.Minute) // the daemons are silent
	require.Zero(t, h.shown().IdleSince)
	require.Equal(t, "silent", h.shown().Access.Nodes[0].Daemon)
}

// A server that was started a moment ago tells what the one before knew.
func TestEveryServerTellsTheSameIdleness(t *testing.T) {
	t.Parallel()
	var cfg server.Config
	h := newHolding(t, func(c *server.Config) { cfg = *c })
	h.pass(30*time.Minute, 30*time.Second)
	before := h.shown()
	require.NotZero(t, before.IdleSince)
	other, err := server.New(cfg)
	require.NoError(t, err)
	h.handler = described{t, other.Description(), other}
	require.Equal(t, before.IdleSince, h.shown().IdleSince)
	h.pass(10*time.Minute, 10*time.Second)
	require.Equal(t, before.IdleSince, h.shown().IdleSince, "and goes on with it")
}

// What happens between two writes is not lost, and what ends idleness is written at once.
func TestUseBetweenTwoWritesCounts(t *testing.T) {
	t.Parallel()
	h := newHolding(t)
	for range 40 { // a write is due after every third report
		h.pass(20*time.Second, 10*time.Second)
		h.clock.Advance(10 * time.Second)
		h.report(3)
	}
	require.Zero(t, h.shown().IdleSince)
	h.pass(20*time.Minute, 10*time.Second)
	require.NotZero(t, h.shown().IdleSince)
	h.clock.Advance(time.Second)
	h.report(3)
	require.Zero(t, h.shown().IdleSince)
}

// GPUs that do not tell what they do, and those that are made up, are not idle: nobody knows.
func TestWhatIsNotLookedAtIsNotIdle(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*contract.Heartbeat){
		"simulated": func(b *contract.Heartbeat) { b.Look.Source = "simulated" },
		"mute":      func(b *contract.Heartbeat) { b.Look.GPUs[2].Utilization = nil },
		"lost":      func(b *contract.Heartbeat) { b.Look.GPUs[2].Lost = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHolding(t)
			h.pass(30*time.Minute, 30*time.Second, change)
			require.Zero(t, h.shown().IdleSince)
		})
	}
}

// The report and the costs divide what was held alike.
func TestIdleHoursAreInReportAndCosts(t *testing.T) {
	t.Parallel()
	h := newHolding(t)
	h.report(0)
	h.pass(30*time.Minute, 30*time.Second)
	h.clock.Advance(30 * time.Minute)
	report := ask[contract.Report](h.world, "root", http.MethodGet, "/v1/reports/summary", "")
	require.InDelta(t, 4, report.Activity.Idle.GPUHours, 0.1)
	require.InDelta(t, 4, report.Activity.Unobserved.GPUHours, 0.1)
	require.Zero(t, report.Activity.Used.GPUHours)
	require.InDelta(t, report.BusyGPUHours, report.Activity.Idle.GPUHours+report.Activity.Unobserved.GPUHours, 1e-9)
	costs := ask[contract.CostReport](h.world, "root", http.MethodGet, "/v1/reports/costs", "")
	for _, l := range costs.Items {
		if l.Payer == "tenant" {
			require.Equal(t, report.Activity, *l.Activity)
		} else {
			require.Nil(t, l.Activity)
		}
	}
}

func TestThePolicyOfAnObservedPoolHasNoIdleness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, field := range []string{"idle_warn_after_seconds", "idle_reclaim_after_seconds"} {
		refused := w.refuse("root", http.MethodPost, "/v1/pools", `{"name":"cluster","provisioner":"sim","model":"a100",`+
			`"gpus_per_node":4,"gpu_memory_mib":81920,"price_per_node_hour":{"amount":"8.40","currency":"USD"},`+
			`"max_nodes":2,"use":"observed","default_organization":"acme","`+field+`":3600}`, "Idempotency-Key", field)
		require.Equal(t, "/"+field, refused.Errors[0].Pointer)
		require.Contains(t, refused.Errors[0].Message, "observed pool")
	}
}

// Whoever is no operator can neither set nor weaken what a pool does about idle GPUs.
func TestOnlyOperatorsSetThePolicyOfIdleGPUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.createPool()
	w.createKey("admin", "admin")
	path := "/v1/pools/" + pool.ID
	patched := ask[contract.Pool](w, "root", http.MethodPatch, path,
		`{"idle_warn_after_seconds":3600,"idle_reclaim_after_seconds":7200}`, "If-Match", `"1"`)
	require.Equal(t, []int64{3600, 7200}, []int64{patched.IdleWarnAfter, patched.IdleReclaimAfter})
	refused := w.refuse("admin", http.MethodPatch, path, `{"idle_reclaim_after_seconds":0}`, "If-Match", `"2"`)
	require.Equal(t, http.StatusForbidden, refused.Status)
	require.Equal(t, patched.IdleReclaimAfter,
		ask[contract.Pool](w, "admin", http.MethodGet, path, "").IdleReclaimAfter)
}

// Of what is over it is told until when it was used: idleness at its end is none, and nobody needs to have looked.
func TestWhatIsOverSaysUntilWhenItWasUsed(t *testing.T) {
	t.Parallel()
	used := func(h *holding) contract.Allocation {
		ask[contract.Allocation](h.world, "root", http.MethodPost, "/v1/allocations/"+h.id+"/release", "",
			"Idempotency-Key", "release")
		require.Zero(t, ask[contract.List[contract.Allocation]](h.world, "root", http.MethodGet,
			"/v1/allocations?all=true", "").Items[0].UsedUntil, "nobody asked")
		return ask[contract.List[contract.Allocation]](h.world, "root", http.MethodGet,
			"/v1/allocations?all=true&used=true", "").Items[0]
	}
	h := newHolding(t)
	h.pass(20*time.Minute, 30*time.Second, func(b *contract.Heartbeat) { *b.Look.GPUs[3].Utilization = 40 })
	busy := h.clock.Now()
	h.pass(20*time.Minute, 30*time.Second)
	got := used(h)
	require.WithinDuration(t, busy, got.UsedUntil, 30*time.Second)
	require.WithinDuration(t, busy.Add(20*time.Minute), got.EndedAt, time.Minute)

	h = newHolding(t)
	h.pass(20*time.Minute, 30*time.Second)
	got = used(h)
	require.Equal(t, got.ActiveAt, got.UsedUntil, "nobody used it")

	h = newHolding(t)
	h.clock.Advance(20 * time.Minute)
	got = used(h)
	require.Equal(t, got.EndedAt, got.UsedUntil, "nobody looked")
}
