package verbs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// told is a gang whose daemons were told to start it, and have not said whether they did.
func (w *world) told(who ledger.Actor) running {
	w.Helper()
	r := running{Job: w.submit(who, jobOf(0, aGang))}
	w.pass(boot)
	for _, daemon := range w.joinedDaemons() {
		for _, o := range w.orders(daemon) {
			r.daemons, r.orders = append(r.daemons, daemon), append(r.orders, o)
		}
	}
	require.Len(w, r.orders, 2)
	r.Job = w.readJob(r.ID)
	require.Equal(w, job.Scheduled, r.State())
	return r
}

// hasNot has a daemon of a job be asked for its attempt, and say that it does not have it.
func (w *world) hasNot(r running, daemon int) {
	w.Helper()
	of := []ledger.JobAttempt{{JobID: r.ID, Attempt: r.Attempt}}
	answer := w.settle(r.daemons[daemon], says(nil))
	require.Equal(w, of, answer.UnlistedJobs)
	require.Empty(w, answer.Start, "what is to end is not begun any more")
	w.settle(r.daemons[daemon], says(func(s *ledger.NodeReport) { s.GoneJobs = of }))
	require.Empty(w, w.settle(r.daemons[daemon], says(nil)).UnlistedJobs)
}

// A daemon that was told to start an attempt may have begun it without having been heard. The job has no other attempt
// before that one is known to be over.
func TestAnAttemptThatMayHaveBegunIsOverBeforeTheNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		comes func(w *world, r running)
		want  job.State
	}{
		"it ran to its end unheard": {func(w *world, r running) {
			w.report(r.daemons[0], r.orders[0], succeeded)
			require.Equal(w, job.Scheduled, w.readJob(r.ID).State())
			w.report(r.daemons[1], r.orders[1], succeeded)
		}, job.Completed},
		"nobody has begun it": {func(w *world, r running) {
			w.hasNot(r, 0)
			require.Equal(w, job.Scheduled, w.readJob(r.ID).State())
			w.hasNot(r, 1)
		}, job.Pending},
		"one rank runs": {func(w *world, r running) {
			w.hasNot(r, 1)
			r.daemons, r.orders = r.daemons[:1], r.orders[:1]
			require.Len(w, w.stops(r), 1)
			require.True(w, w.readJob(r.ID).Ending.Is())
			w.report(r.daemons[0], r.orders[0], stopped)
		}, job.Pending},
		"nobody is heard in time": {func(w *world, r running) {
			w.clock.Set(r.Ending.By)
			w.doDueWork()
		}, job.Scheduled}, // on other nodes
	} {
		w := newWorld(t)
		ann := w.newSubmitter("ann")
		r := w.told(ann)
		_, err := w.ledger.RequeueJob(t.Context(), ann, r.ID)
		require.NoError(t, err, name)
		r.Job = w.readJob(r.ID)
		require.Equal(t, job.ThenRequeued, r.Ending.Then, name)
		require.Equal(t, allocation.Active, w.readAllocation(r.AllocationID).State(), name)
		c.comes(w, r)
		is := w.readJob(r.ID)
		require.Equal(t, c.want, is.State(), name)
		require.False(t, is.Ending.Is(), name)
		require.Equal(t, allocation.Released, w.readAllocation(r.AllocationID).State(), name)
	}
}

// What no daemon was told to start is over at once.
func TestAnAttemptThatNobodyWasToldToStartEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(2)
	j := w.submit(ann, jobOf(0, aGang))
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
	got, err := w.ledger.CancelJob(t.Context(), ann, j.ID)
	require.NoError(t, err)
	require.Equal(t, job.Cancelled, got.State())
}

// What ended while its node could not be heard ended then, not when that was heard.
func TestAJobEndedWhenItsNodeSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ago  [2]time.Duration // before the report of each rank, which come together
		want time.Duration
	}{
		"in an outage, one after the other": {[2]time.Duration{50 * time.Minute, 55 * time.Minute}, 50 * time.Minute},
		"before it began":                   {[2]time.Duration{5 * time.Hour, 5 * time.Hour}, time.Hour},
		"one daemon does not say":           {[2]time.Duration{0, 55 * time.Minute}, 0},
	} {
		w := newWorld(t)
		ann := w.newSubmitter("ann")
		r := w.run(ann, jobOf(0, aGang))
		w.clock.Set(w.clock.Now().Add(time.Hour))
		for i, daemon := range r.daemons {
			w.settle(daemon, ledger.NodeReport{Isolation: capacity.IsolationUser, Jobs: []ledger.JobReport{{JobID: r.ID,
				Attempt: 1, Rank: r.orders[i].Rank, Ended: true, End: *succeeded, EndedAgo: c.ago[i]}}})
		}
		is := w.readJob(r.ID)
		require.Equal(t, job.Completed, is.State(), name)
		require.Equal(t, w.clock.Now().Add(-c.want), is.EndedAt, name)
		told := w.readEvents("job.completed")[0].Message
		require.Equal(t, c.want > 0, strings.Contains(told, "it ended at "+ledger.FormatTime(is.EndedAt)), told)
	}
}
