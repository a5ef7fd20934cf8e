package verbs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// busyPool fills the pool with jobs of one GPU each that run, and returns the one that ends, with the daemon of its
// node.
func (w *world) busyPool(who ledger.Actor) (runs ledger.JobOrder, daemon ledger.Actor) {
	w.Helper()
	for range 8 {
		w.submit(who, jobOf(1, nil))
	}
	w.pass(boot + time.Minute)
	for _, n := range w.readNodes(node.Ready) {
		daemon = w.lookAt(n.ID).daemon
		for _, runs = range w.orders(daemon) {
			w.report(daemon, runs, nil)
		}
	}
	return runs, daemon
}

// endCleanly has a daemon tell at once that a job has ended and that its GPUs are clean.
func (w *world) endCleanly(daemon ledger.Actor, o ledger.JobOrder) ledger.NodeOrders {
	w.Helper()
	return w.settle(daemon, ledger.NodeReport{Isolation: capacity.IsolationUser,
		Jobs:    []ledger.JobReport{{JobID: o.Job.ID, Attempt: o.Job.Attempt, Ended: true, End: *succeeded}},
		Cleaned: []ledger.Cleaned{{AllocationID: o.Allocation.ID, Proof: "nothing is left"}}})
}

// Who ends gives its GPUs to whose turn is next, at once: and to nobody else.
func TestTheNextJobStartsWhenOneEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		waiting []int                           // GPUs of the jobs that wait, in order: more than one have a high priority
		then    func(w *world, waits []job.Job) // before the job ends
		starts  int                             // of those that wait, from the first
	}{
		"the first that waits":  {waiting: []int{1, 1}, starts: 1},
		"nobody else before it": {waiting: []int{2, 1}},
		"nobody who is held": {waiting: []int{1}, then: func(w *world, waits []job.Job) {
			w.mustHold(operator, waits[0].ID)
		}},
		"not as it was long ago": {waiting: []int{1}, then: func(w *world, _ []job.Job) {
			w.clock.Set(w.clock.Now().Add(time.Minute))
		}},
		"not with a revoked key": {waiting: []int{1}, then: func(w *world, waits []job.Job) {
			_, err := w.ledger.RevokeKey(w.Context(), operator, waits[0].SubmittedBy)
			require.NoError(w, err)
		}},
		"nothing in a recovery": {waiting: []int{1}, then: func(w *world, _ []job.Job) {
			_, err := w.ledger.BeginRecovery(w.Context(), operator, "", "a backup was restored")
			require.NoError(w, err)
		}},
	} {
		w := newWorld(t)
		runs, daemon := w.busyPool(w.newSubmitter("ann"))
		bob := w.newSubmitter("bob")
		var waits []job.Job
		for _, gpus := range tc.waiting {
			waits = append(waits, w.submit(bob, jobOf(gpus, func(c *ledger.JobCommand) {
				if gpus > 1 {
					c.Job.Priority = job.High
				}
			})))
		}
		w.doDueWork()
		if tc.then != nil {
			tc.then(w, waits)
		}
		told := w.endCleanly(daemon, runs)
		require.Len(t, told.Start, tc.starts, name)
		for i, o := range told.Start {
			require.Equal(t, waits[i].ID, o.Job.ID, name)
			require.Contains(t, w.readAllocation(o.Allocation.ID).Opened, daemon.NodeID, name)
			events := w.readEvents(ledger.JobOrdered)
			require.Equal(t, ledger.OrderTold, events[slices.IndexFunc(events, func(e ledger.Event) bool {
				return e.Subject == o.Job.ID
			})].Reason, "nobody asks the daemon to report for it")
		}
		for i, j := range waits {
			require.Equal(t, i < tc.starts, w.readJob(j.ID).HasGPUs(), name)
		}
		require.Empty(t, w.endCleanly(daemon, runs).Start[tc.starts:], "said again, it changes nothing: %s", name)
	}
}
