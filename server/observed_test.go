package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

const observedBody = `{"name":"obs","provisioner":"cluster","instance_type":"gpu-4","model":"a100",` +
	`"gpus_per_node":4,"gpu_memory_mib":81920,"price_per_node_hour":{"amount":"8","currency":"USD"},` +
	`"max_nodes":4,"boot_p50_seconds":60,"boot_p95_seconds":120,"warm_hold_seconds":600,"use":"observed"}`

// report reports what a cluster did.
func (w *world) report(o ledger.Observation) {
	w.t.Helper()
	o.Provisioner, o.At, o.Mark, o.Complete = "cluster", w.clock.Now(), w.clock.Now().String(), true
	require.NoError(w.t, w.ledger.EnsureObserving(w.t.Context(), "cluster"))
	due, err := w.ledger.Dispatch(w.t.Context(), 100, time.Minute)
	require.NoError(w.t, err)
	for _, task := range due {
		if task.Kind != ledger.TaskObserve {
			continue
		}
		task, err = w.ledger.ClaimTask(w.t.Context(), task.ID, task.Attempt, time.Minute)
		require.NoError(w.t, err)
		_, err = w.ledger.ReportObserved(w.t.Context(), ledger.Guard{TaskID: task.ID, Fence: task.Fence}, o)
		require.NoError(w.t, err)
		return
	}
	require.Fail(w.t, "the cluster is not looked at")
}

// job is a job that began on nodes that booted, after it was queued.
func (w *world) job(id string, waited time.Duration) ledger.ObservedWork {
	now := w.clock.Now()
	return ledger.ObservedWork{Type: "gpu-4", StartedAt: now, Nodes: []ledger.WorkNode{{GPUs: 4}},
		Work: allocation.Work{ID: id, QueuedAt: now.Add(-waited), WorkOwner: capacity.WorkOwner{User: "ann"}}}
}

// What work in an observed pool waited for is told apart: in the explanation of its pool,
// in the report, and of each piece.
func TestWhatObservedWorkWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools", observedBody)
	w.createTenant("other")
	w.report(ledger.Observation{Waiting: []ledger.ObservedWait{
		{ID: "17@1", Type: "gpu-4", Reason: allocation.WaitedPriority},
		{ID: "18@1", Type: "gpu-4", Reason: allocation.WaitedLimits}}})
	w.clock.Advance(time.Minute)
	booted := w.job("19@1", 40*time.Second)
	w.report(ledger.Observation{Work: []ledger.ObservedWork{w.job("17@1", 90*time.Second), booted, w.job("20@1", 0)},
		Waiting: []ledger.ObservedWait{{ID: "18@1", Type: "gpu-4", Reason: allocation.WaitedLimits}}})
	w.clock.Advance(time.Minute)

	wants := []contract.Waits{{Reason: "boot", Starts: 1, MeanSeconds: 40}, {Reason: "limits", Waiting: 1},
		{Reason: "priority", Starts: 1, MeanSeconds: 90}}
	e := ask[contract.Explanation](w, "root", http.MethodGet, "/v1/pools/obs/explain", "")
	require.Equal(t, wants, e.Waits)
	require.Equal(t, []string{"pool", pool.ID, "observed"}, []string{e.Kind, e.Subject, e.State})
	require.Contains(t, e.Summary, "2 of 3 starts in 7d did not wait for a boot")
	require.Empty(t, ask[contract.Explanation](w, "other", http.MethodGet, "/v1/pools/obs/explain", "").Waits,
		"another tenant sees its own")
	require.Equal(t, contract.CodeNotFound, w.refuse("root", http.MethodGet, "/v1/pools/none/explain", "").Code)

	r := ask[contract.Report](w, "root", http.MethodGet, "/v1/reports/summary", "")
	require.Equal(t, []contract.Waits{wants[0], wants[2]}, r.Waits)
	require.Equal(t, []int{3, 2}, []int{r.Starts, r.ZeroWaitStarts})
	labels := map[string]string{}
	for _, a := range ask[contract.List[contract.Allocation]](w, "root", http.MethodGet, "/v1/allocations?all=true",
		"").Items {
		labels[a.Work.Label] = a.Work.WaitedFor
		require.Equal(t, a.Work.Label+"@1", a.Work.ID)
	}
	require.Equal(t, map[string]string{"17": "priority", "19": "", "20": ""}, labels)
}

// What is free on nodes that are up is told to every organization, as counts, until nobody has
// looked for two minutes.
func TestTheRoomOfAnObservedPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools", observedBody)
	w.createPool()
	w.createTenant("other")
	read := func(name string) *contract.PoolRoom {
		return ask[contract.Pool](w, "other", http.MethodGet, "/v1/pools/"+name, "").Room
	}
	require.Nil(t, read("obs"))
	w.report(ledger.Observation{Rooms: []ledger.ObservedRoom{{Type: "gpu-4", Idle: 2,
		Shared: []ledger.SharedNodes{{Free: 1, Nodes: 3}}}, {Type: "gpu-8", Idle: 7}}})
	require.Equal(t, &contract.PoolRoom{SeenAt: w.clock.Now().UTC(), IdleNodes: 2,
		Shared: []contract.SharedNodes{{FreeGPUs: 1, Nodes: 3}}}, read("obs"))
	require.Nil(t, read("lab"), "a reserved pool has none")
	for _, p := range ask[contract.List[contract.Pool]](w, "other", http.MethodGet, "/v1/pools", "").Items {
		require.Equal(t, p.ID == pool.ID, p.Room != nil, p.Name)
	}
	w.clock.Advance(3 * time.Minute)
	require.Nil(t, read("obs"))
}

func TestTheExplanationOfAReservedPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.createPool()
	e := ask[contract.Explanation](w, "root", http.MethodGet, "/v1/pools/lab/explain", "")
	require.Equal(t, []string{"pool", "reserved"}, []string{e.Kind, e.State})
	require.Contains(t, e.Summary, "lab: 0 of at most 2 nodes ready")
	require.Empty(t, e.Waits)
	_, err := w.ledger.BeginRecovery(t.Context(), ledger.SystemActor("test"), "", "a test")
	require.NoError(t, err)
	e = ask[contract.Explanation](w, "root", http.MethodGet, "/v1/pools/lab/explain", "")
	require.Equal(t, ledger.CodeRecovering, e.Blockers[0].Code)
}

// Work is counted in one pool, and belongs to somebody who is there.
func TestPoolsOfTheSameNodesAndTheirHolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask[contract.Pool](w, "root", http.MethodPost, "/v1/pools", observedBody)
	p := w.refuse("root", http.MethodPost, "/v1/pools", strings.Replace(observedBody, "obs", "again", 1))
	require.Equal(t, 422, p.Status)
	require.Equal(t, "/instance_type", p.Errors[0].Pointer)
	require.Contains(t, p.Errors[0].Message, "obs has the gpu-4 of cluster already")
	require.NotEmpty(t, p.Fixes)

	other := w.createTenant("other")
	pool := ask[contract.Pool](w, "root", http.MethodGet, "/v1/pools/obs", "")
	got := w.send("root", http.MethodPatch, "/v1/pools/obs", `{"holders":[{"user":"ann","organization":"other"}]}`,
		"If-Match", `"1"`)
	require.Equal(t, 200, got.Code, got.Body.String())
	in := w.refuse("root", http.MethodDelete, "/v1/organizations/"+other.ID, "")
	require.Equal(t, contract.CodeInUse, in.Code)
	require.Equal(t, "live_holders", in.Blockers[0].Code)
	require.Contains(t, in.Blockers[0].Message, "rule 1 of "+pool.Name)
	require.NotEmpty(t, in.Fixes[0].Label)
}
