package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// putOff is a job that does not start before a time from now.
func (w *world) putOff(gpus int, by time.Duration) ledger.JobCommand {
	return jobOf(gpus, func(c *ledger.JobCommand) { c.Job.NotBefore = w.clock.Now().Add(by) })
}

// countNodes is how many nodes are there or on their way.
func (w *world) countNodes() int {
	return len(w.readNodes(node.Requested, node.Provisioning, node.Booting, node.Ready))
}

// A job that is put off finds its nodes ready at its time, and starts without a wait. They are not booted long before.
func TestNodesAreBootedAheadOfAJobThatIsPutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	j := w.submit(ann, w.putOff(4, 2*time.Hour))
	w.pass(90 * time.Minute)
	require.Zero(t, w.countNodes(), "it is too early")
	for range 30 { // until its nodes are asked for
		if w.pass(time.Minute); w.countNodes() > 0 {
			break
		}
	}
	require.Equal(t, 2, w.countNodes(), "as many as it needs")
	e, err := w.ledger.ExplainJob(t.Context(), ann, j.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "2 nodes are being booted for it, ready at about ")
	w.pass(j.NotBefore.Sub(w.clock.Now()) - time.Second)
	require.Len(t, w.readNodes(node.Ready), 2)
	require.Contains(t, w.queue()[0].Ahead, "2 nodes are ready for it")
	require.Equal(t, job.Pending, w.readJob(j.ID).State())
	w.pass(2 * time.Second)
	a := w.readAllocation(w.readJob(j.ID).AllocationID)
	require.Equal(t, a.RequestedAt, a.ActiveAt, "it waited for no boot")
	require.WithinDuration(t, j.NotBefore, a.ActiveAt, time.Second)
	require.Equal(t, 2, w.countNodes())
}

// Nothing is booted for who waits no more, for who claims a reservation at that time, or where others' promises are.
func TestNothingIsBootedAheadInVain(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world, who ledger.Actor, j job.Job){
		"cancelled": func(w *world, who ledger.Actor, j job.Job) { w.mustCancel(who, j.ID) },
		"held":      func(w *world, who ledger.Actor, j job.Job) { w.mustHold(who, j.ID) },
		"paused": func(w *world, who ledger.Actor, _ job.Job) {
			_, err := w.ledger.PausePrewarming(w.Context(), operator, who.OrganizationID, "quiet", time.Time{})
			require.NoError(w, err)
		},
		"others' promises": func(w *world, _ ledger.Actor, _ job.Job) {
			w.reserveHour(w.newSubmitter("bob"), 2*time.Hour+30*time.Minute, 8)
		},
	} {
		w := newWorld(t)
		ann := w.newSubmitter("ann")
		prepare(w, ann, w.submit(ann, w.putOff(2, 2*time.Hour)))
		w.pass(2*time.Hour - time.Second)
		require.Zero(t, w.countNodes(), name)
	}
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.reserveFor(ann, 2*time.Hour, 2, reservation.OwnJobs)
	j := w.submit(ann, w.putOff(2, 2*time.Hour+time.Minute))
	w.pass(2*time.Hour + 2*time.Minute)
	require.Equal(t, 1, w.countNodes(), "that of the reservation")
	require.Equal(t, j.ID, w.readReservation(r.ID).JobID)
}

// A job that waits for another one finds the nodes ready that it needs beside those that the other one leaves, when
// that is predicted to end; none is booted for one that has all it needs by then.
func TestNodesAreBootedAheadOfAJobThatWaitsForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmUp(ann)
	w.teach(ann, "prepare", 2*time.Hour)
	w.pass(12 * time.Hour) // all nodes are given up
	require.Zero(t, w.countNodes())
	r := running{Job: w.submit(ann, named("prepare", 2))}
	w.pass(boot)
	w.begin(&r)
	require.Equal(t, 1, w.countNodes())
	after := func(gpus int) ledger.JobCommand {
		return jobOf(gpus, func(c *ledger.JobCommand) {
			c.Job.Dependencies = []job.Depends{{JobID: r.ID, Condition: job.AfterOK}}
		})
	}
	small := w.submit(ann, after(2))
	w.pass(100 * time.Minute)
	require.Equal(t, 1, w.countNodes(), "it is too early")
	w.pass(19 * time.Minute)
	require.Equal(t, 1, w.countNodes(), "what it waits for leaves all that it needs")
	w.mustCancel(ann, small.ID)
	r2 := r
	w.endAll(r2, succeeded)
	w.doDueWork()

	r = running{Job: w.submit(ann, named("prepare", 2))}
	w.pass(time.Second)
	w.begin(&r)
	large := w.submit(ann, after(6))
	w.pass(100 * time.Minute)
	require.Equal(t, 1, w.countNodes(), "it is too early")
	w.pass(19 * time.Minute)
	require.Equal(t, 3, w.countNodes(), "two more than there are")
	require.Contains(t, w.queue()[0].Ahead, "being booted for it, ready at about ", "it says so")
	w.pass(time.Minute)
	w.endAll(r, succeeded)
	w.pass(time.Second)
	a := w.readAllocation(w.readJob(large.ID).AllocationID)
	require.Equal(t, a.RequestedAt, a.ActiveAt, "it waited for no boot")
}
