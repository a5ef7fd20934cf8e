package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// says is a report of a daemon, with nothing that runs unless it says so.
func says(change func(*ledger.NodeReport)) ledger.NodeReport {
	said := ledger.NodeReport{Isolation: capacity.IsolationUser}
	if change != nil {
		change(&said)
	}
	return said
}

// A job that ended since the backup was taken is lost once its daemon was asked and says that it does not have it, not
// before: a report that does not list it may be older than the job.
func TestAJobThatItsDaemonDoesNotHaveIsLost(t *testing.T) {
	t.Parallel()
	for retries, want := range map[int]job.State{0: job.Failed, 1: job.Pending} {
		w := newWorld(t)
		ann := w.newSubmitter("ann")
		r := w.run(ann, jobOf(1, func(c *ledger.JobCommand) { c.Job.Retries.Lost = retries }))
		daemon, of := r.daemons[0], ledger.JobAttempt{JobID: r.ID, Attempt: 1}
		_, err := w.ledger.BeginRecovery(t.Context(), operator, "", "a backup was restored")
		require.NoError(t, err)
		gone := says(func(s *ledger.NodeReport) { s.GoneJobs = []ledger.JobAttempt{of} })
		require.Zero(t, w.settle(daemon, says(nil)), "nobody is asked")
		require.Zero(t, w.settle(daemon, gone))
		_, err = w.ledger.EndRecovery(t.Context(), operator)
		require.NoError(t, err)

		for range 2 { // what it answered was lost
			require.Equal(t, []ledger.JobAttempt{of}, w.settle(daemon, says(nil)).UnlistedJobs)
		}
		require.Equal(t, job.Running, w.readJob(r.ID).State())
		listed := says(func(s *ledger.NodeReport) { s.Jobs = []ledger.JobReport{{JobID: r.ID, Attempt: 1}} })
		require.Empty(t, w.settle(daemon, listed).UnlistedJobs)
		require.Empty(t, w.settle(daemon, gone).UnlistedJobs)
		is := w.readJob(r.ID)
		require.Equal(t, want, is.State())
		require.Equal(t, job.Lost, is.End.Code)
		require.Contains(t, is.End.Reason, "does not have it any more")
		held := w.readAllocation(r.AllocationID)
		require.Equal(t, allocation.Released, held.State())
		require.Zero(t, w.settle(daemon, gone).UnlistedJobs, "said again, it changes nothing")
		require.Equal(t, is, w.readJob(r.ID))
	}
}

// Who cancels a job before the restore is confirmed keeps it from being tried again.
func TestACancelledJobThatIsGoneIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.run(ann, jobOf(1, nil))
	_, err := w.ledger.BeginRecovery(t.Context(), operator, "", "a backup was restored")
	require.NoError(t, err)
	_, err = w.ledger.CancelJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	_, err = w.ledger.EndRecovery(t.Context(), operator)
	require.NoError(t, err)
	of := []ledger.JobAttempt{{JobID: r.ID, Attempt: 1}}
	require.Equal(t, of, w.settle(r.daemons[0], says(nil)).UnlistedJobs)
	w.settle(r.daemons[0], says(func(s *ledger.NodeReport) { s.GoneJobs = of }))
	require.Equal(t, job.Cancelled, w.readJob(r.ID).State())
}

// A daemon's word counts for attempts that it has begun, on its own node: one that is ordered is still to come.
func TestWhatADaemonHasYetToStartIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(2)
	j := w.submit(ann, jobOf(1, nil))
	w.doDueWork()
	gone := says(func(s *ledger.NodeReport) { s.GoneJobs = []ledger.JobAttempt{{JobID: j.ID, Attempt: 1}} })
	for range 2 {
		for _, daemon := range w.joinedDaemons() {
			require.Empty(t, w.settle(daemon, gone).UnlistedJobs)
		}
	}
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
}

// An allocation that ended since the backup was taken ends once the daemon of its node says that it lets nobody in
// again; one that the daemon does not know may be one that nobody has entered yet.
func TestAnAllocationThatIsOverOnItsNodeEnds(t *testing.T) {
	t.Parallel()
	for _, entered := range []bool{true, false} { // before the backup was taken
		w := newWorld(t)
		ann := w.newPerson("ann")
		ours := w.mustAllocate(ann, 2)
		w.pass(boot)
		on := w.readNodes(node.Ready)[0].ID
		daemon := w.lookAt(on).daemon
		if entered {
			require.NoError(t, w.ledger.OpenHold(t.Context(), ann, ours.ID, on, capacity.IsolationUser))
		}
		require.Equal(t, []string{ours.ID}, w.settle(daemon, says(nil)).UnlistedHolds)
		w.clock.Set(w.clock.Now().Add(10 * time.Minute))
		require.Equal(t, allocation.Active, w.readAllocation(ours.ID).State())
		require.Empty(t, w.settle(daemon, says(func(s *ledger.NodeReport) { s.Holds = []string{ours.ID} })).UnlistedHolds)
		over := says(func(s *ledger.NodeReport) { s.OverHolds = []string{ours.ID, "alc_unknown"} })
		for range 2 {
			told := w.settle(daemon, over)
			require.Empty(t, told.UnlistedHolds)
			require.Empty(t, told.Ended, "it is clean already")
		}
		is := w.readAllocation(ours.ID)
		require.Equal(t, allocation.Released, is.State())
		require.Equal(t, ledger.ReasonOverOnNode, is.Reason)
		require.Equal(t, w.clock.Now(), is.EndedAt)
		require.Len(t, w.readEvents("allocation.released"), 1)
		require.Contains(t, w.lastMessage("allocation.released"), "the daemon of node "+on+" says")
	}
}

// A daemon speaks for its own node: what has work on another one goes on there.
func TestAnAllocationGoesOnWhereItHasWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.warmNodes(2)
	ours, theirs := w.mustAllocate(ann, 4), w.newPerson("bob")
	w.doDueWork()
	on, daemons := w.readNodes(node.Ready), w.joinedDaemons()
	over := says(func(s *ledger.NodeReport) { s.OverHolds = []string{ours.ID} })
	for _, n := range on {
		require.NoError(t, w.ledger.OpenHold(t.Context(), ann, ours.ID, n.ID, capacity.IsolationUser))
	}
	require.Empty(t, w.settle(daemons[0], over).UnlistedHolds, "it is not asked again")
	require.Empty(t, w.settle(daemons[0], says(nil)).UnlistedHolds)
	is := w.readAllocation(ours.ID)
	require.Equal(t, allocation.Active, is.State())
	require.Equal(t, []string{daemons[1].NodeID}, is.Opened)
	require.Len(t, w.readEvents("allocation.left_node"), 1)
	require.Equal(t, []string{ours.ID}, w.settle(daemons[1], says(nil)).UnlistedHolds)
	w.settle(daemons[1], over)
	require.Equal(t, allocation.Released, w.readAllocation(ours.ID).State())

	next, err := w.ledger.Allocate(t.Context(), theirs, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Hour})
	require.NoError(t, err)
	w.doDueWork()
	held := w.readAllocation(next.ID)
	require.Equal(t, allocation.Active, held.State(), "its GPUs are free at once")
	for _, daemon := range daemons {
		if daemon.NodeID != held.Devices[0].NodeID {
			w.settle(daemon, says(func(s *ledger.NodeReport) { s.OverHolds = []string{next.ID} }))
		}
	}
	require.Equal(t, allocation.Active, w.readAllocation(next.ID).State(), "it has nothing on that node")
}
