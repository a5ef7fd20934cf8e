package verbs_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

// newPreemptiveWorld is a world of four nodes of two GPUs, in which jobs leave for others.
func newPreemptiveWorld(t *testing.T) *world {
	w := newWorld(t)
	w.scheduling.Preemption = true
	w.ledger = w.restartedLedger()
	return w
}

// mayLeave is a job of low priority that may be told to leave, and keeps its work when it is.
func mayLeave(gpus int) ledger.JobCommand {
	return jobOf(gpus, func(c *ledger.JobCommand) {
		yes := true
		c.Preemptible, c.Job.Priority, c.Job.MaxRuntime = &yes, job.Low, 20*time.Hour
		c.Job.Checkpoint = job.Checkpoint{Signal: "USR1", Before: time.Hour}
	})
}

func urgent(gpus int) ledger.JobCommand {
	return jobOf(gpus, func(c *ledger.JobCommand) { c.Job.Priority = job.High })
}

// fill has jobs that may leave run on all GPUs.
func (w *world) fill(who ledger.Actor) (all []running) {
	w.Helper()
	for range 4 {
		all = append(all, running{Job: w.submit(who, mayLeave(2))})
	}
	w.pass(boot)
	for i := range all {
		w.begin(&all[i])
	}
	return all
}

// leaving are those of jobs that were told to leave.
func (w *world) leaving(all []running) (some []running) {
	w.Helper()
	for _, r := range all {
		if w.readJob(r.ID).State() == job.Preempted {
			some = append(some, r)
		}
	}
	return some
}

func (w *world) rooms() (ids []string) {
	w.Helper()
	w.read(func(r ledger.Reader) error {
		p, err := r.Pool(w.pool.ID)
		for _, room := range p.Rooms {
			ids = append(ids, room.For)
		}
		return err
	})
	return ids
}

// The whole way: one job leaves, no more than needed, with its checkpoint's signal and its grace; what it leaves is
// kept for the other one, whatever server looks; and it comes back with its place, and finishes.
func TestAJobLeavesForAnother(t *testing.T) {
	t.Parallel()
	w := newPreemptiveWorld(t)
	ann, bob, eve := w.newSubmitter("ann"), w.newSubmitter("bob"), w.newSubmitter("eve")
	all := w.fill(ann)
	w.pass(9 * time.Minute)
	x := w.submit(bob, urgent(2))
	w.pass(50 * time.Second)
	require.Empty(t, w.leaving(all), "they have only begun")
	w.pass(11 * time.Second)
	require.Len(t, w.leaving(all), 1)
	left := w.leaving(all)[0]
	require.Equal(t, []string{x.ID}, w.rooms())
	told := w.readEvents(ledger.JobPreempting)
	require.Len(t, told, 1)
	require.Equal(t, left.ID, told[0].Subject)
	require.NotContains(t, told[0].Message+told[0].Actor+w.readJob(left.ID).Ending.For, x.ID, "another organization's")
	require.NotContains(t, told[0].Actor, bob.KeyID)
	require.Equal(t, []ledger.JobStop{{JobAttempt: ledger.JobAttempt{JobID: left.ID, Attempt: 1}, Signal: "USR1",
		Lead: 90 * time.Second, Grace: 30 * time.Second}}, w.stops(left))
	for who, want := range map[*ledger.Actor][2]string{&ann: {left.ID, "for a job that goes before it"},
		&bob: {x.ID, "1 job leaves for it"}} {
		e, err := w.ledger.ExplainJob(t.Context(), *who, want[0])
		require.NoError(t, err)
		require.Contains(t, e.Summary, want[1])
	}

	w.ledger = w.restartedLedger()
	w.pass(time.Minute)
	require.Len(t, w.leaving(all), 1, "once is enough")
	w.report(left.daemons[0], left.orders[0], stopped)
	again := w.readJob(left.ID)
	require.Equal(t, job.Pending, again.State())
	require.Equal(t, 1, again.Preemptions)
	require.Equal(t, left.SubmittedAt, again.SubmittedAt)
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(x.ID).State(), "its GPUs are not clean")
	w.ledger = w.restartedLedger()
	w.proveClean(left.daemons[0], ledger.Cleaned{AllocationID: left.orders[0].Allocation.ID, Proof: "nothing is left"})
	_, err := w.ledger.Allocate(t.Context(), eve, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Hour})
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused, "they are not for others")
	_, err = w.ledger.Allocate(t.Context(), bob, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Minute})
	require.ErrorAs(t, err, &refused, "nor for others of the same organization")
	w.doDueWork()
	won := running{Job: w.readJob(x.ID)}
	require.Equal(t, job.Scheduled, won.State())
	require.Empty(t, w.rooms())
	w.begin(&won)
	w.pass(time.Minute)
	require.Empty(t, w.leaving(all))
	w.endAll(won, succeeded)
	w.doDueWork()
	w.begin(&left)
	require.Equal(t, 2, left.Attempt)
	w.endAll(left, succeeded)
	require.Equal(t, job.Completed, w.readJob(left.ID).State())
}

// A job that is cancelled, held, or not started in time gives up what was left for it.
func TestAJobGivesUpWhatIsLeftForIt(t *testing.T) {
	t.Parallel()
	for name, giveUp := range map[string]func(w *world, by ledger.Actor, id string){
		"cancelled": func(w *world, by ledger.Actor, id string) {
			_, err := w.ledger.CancelJob(w.Context(), by, id)
			require.NoError(w, err)
		},
		"held": func(w *world, by ledger.Actor, id string) {
			_, err := w.ledger.HoldJob(w.Context(), by, id)
			require.NoError(w, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPreemptiveWorld(t)
			ann := w.newSubmitter("ann")
			all := w.fill(ann)
			w.pass(10 * time.Minute)
			x := w.submit(ann, urgent(2))
			w.doDueWork()
			require.Equal(t, []string{x.ID}, w.rooms())
			left := w.leaving(all)[0]
			require.Equal(t, x.ID, w.readJob(left.ID).Ending.For, "of one's own one may know")
			giveUp(w, ann, x.ID)
			require.Empty(t, w.rooms())
			w.endAll(left, stopped)
			w.doDueWork()
			w.begin(&left)
			require.Equal(t, 2, left.Attempt)
		})
	}
}

// Nodes that say nothing, and a proof that does not come, keep nobody waiting for ever: what is left is kept for a
// while, the daemon's silence takes the node out of use, and the job starts on the one that takes its place.
func TestWhatIsLeftIsNotKeptForEver(t *testing.T) {
	t.Parallel()
	w := newPreemptiveWorld(t)
	ann := w.newSubmitter("ann")
	all := w.fill(ann)
	w.pass(10 * time.Minute)
	x := w.submit(ann, urgent(2))
	w.doDueWork()
	left := w.leaving(all)[0]
	by := w.readJob(left.ID).Ending.By
	w.pass(by.Sub(w.clock.Now()))
	require.Equal(t, job.Pending, w.readJob(left.ID).State())
	require.Equal(t, []string{x.ID}, w.rooms())
	w.pass(10 * time.Minute)
	require.Len(t, w.readEvents("node.quarantined"), 1)
	require.Len(t, w.readEvents(ledger.JobPreempting), 1, "nobody else need leave")
	require.Equal(t, job.Scheduled, w.readJob(x.ID).State())
	require.Empty(t, w.rooms())
}

// Nobody leaves for a job that would not start: one whose organization may hold no more, or that is larger than what
// may leave. Nobody waits behind it either.
func TestNobodyLeavesInVain(t *testing.T) {
	t.Parallel()
	w := newPreemptiveWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	org, err := w.ledger.CreateOrganization(t.Context(), operator, "few", quota.Limits{GPUs: 2,
		SpeculationPerDay: money.USD})
	require.NoError(t, err)
	few := w.newSubmitter("few-holder")
	few.OrganizationID = org.ID
	made, err := w.ledger.CreateKey(t.Context(), operator, ledger.Key{ID: "key_few", Name: "few",
		OrganizationID: org.ID, Kind: ledger.PersonKey, Role: ledger.Member, Hash: []byte{1}})
	require.NoError(t, err)
	few.KeyID = made.ID
	stays := running{Job: w.submit(few, jobOf(2, func(c *ledger.JobCommand) { c.Job.MaxRuntime = 20 * time.Hour }))}
	var all []running
	for range 3 {
		all = append(all, running{Job: w.submit(ann, mayLeave(2))})
	}
	w.pass(boot)
	w.begin(&stays)
	for i := range all {
		w.begin(&all[i])
	}
	w.pass(11 * time.Minute)
	over := w.submit(few, urgent(2))
	large := w.submit(bob, urgent(8))
	w.pass(time.Minute)
	require.Empty(t, w.leaving(all))
	fits := w.submit(bob, urgent(6))
	w.pass(time.Minute)
	require.Len(t, w.leaving(all), 3)
	require.Equal(t, []string{fits.ID}, w.rooms())
	for _, j := range []job.Job{over, large} {
		require.Equal(t, job.Pending, w.readJob(j.ID).State())
	}
	for i, r := range all {
		w.endAll(r, stopped)
		w.doDueWork()
		if i < 2 {
			require.Equal(t, job.Pending, w.readJob(fits.ID).State(), "not all have left")
		}
	}
	won := running{Job: fits}
	w.begin(&won)
}

// Where it is off, for those who do not allow it, and for equals, nobody leaves.
func TestWhoDoesNotLeave(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *ledger.JobCommand, *ledger.JobCommand){
		"off":         func(w *world, _, _ *ledger.JobCommand) { w.scheduling.Preemption = false },
		"not allowed": func(_ *world, runs, _ *ledger.JobCommand) { runs.Preemptible = nil },
		"equals":      func(_ *world, _, wants *ledger.JobCommand) { wants.Job.Priority = job.Low },
		"by pool": func(w *world, _, _ *ledger.JobCommand) {
			w.scheduling.Pools = map[string]ledger.Scheduling{"lab": {}}
		},
	} {
		w := newWorld(t)
		w.scheduling.Scheduling = ledger.Scheduling{Preemption: true, MinRuntime: time.Minute}
		runs, wants := mayLeave(8), urgent(8)
		change(w, &runs, &wants)
		w.ledger = w.restartedLedger()
		ann := w.newSubmitter("ann")
		r := w.run(ann, runs)
		w.submit(ann, wants)
		w.pass(5 * time.Minute) // not yet an hour of GPUs
		require.Empty(t, w.leaving([]running{r}), name)
	}
}

// A pool may have jobs leave that do not say whether they may.
func TestThePoolSaysWhoMayLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scheduling.Pools = map[string]ledger.Scheduling{"lab": {Preemption: true, Preemptible: true,
		MinRuntime: time.Minute, LeaveWithin: 10 * time.Second}}
	w.ledger = w.restartedLedger()
	ann := w.newSubmitter("ann")
	runs := mayLeave(8)
	runs.Preemptible = nil
	r := w.run(ann, runs)
	w.submit(ann, urgent(2))
	w.pass(time.Minute)
	require.Len(t, w.leaving([]running{r}), 1)
	require.Equal(t, 10*time.Second, w.stops(r)[0].Grace)
	require.Zero(t, w.stops(r)[0].Lead, "there is no time for a signal of its checkpoint")
}

// Two servers that look at once have nobody leave twice.
func TestTwoServersMakeRoomOnce(t *testing.T) {
	t.Parallel()
	w := newPreemptiveWorld(t)
	ann := w.newSubmitter("ann")
	all := w.fill(ann)
	w.pass(10 * time.Minute)
	w.submit(ann, urgent(2))
	var work sync.WaitGroup
	for range 4 {
		l := w.restartedLedger()
		work.Go(func() {
			for range 3 {
				if err := l.ScheduleJobs(t.Context(), w.pool.ID); err != nil && !strings.Contains(err.Error(), "busy") {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	w.doDueWork()
	require.Len(t, w.leaving(all), 1)
	require.Len(t, w.rooms(), 1)
}

// Two jobs that could leave for one another take turns at most so often, and both finish.
func TestTwoJobsDoNotLeaveForEachOtherForEver(t *testing.T) {
	t.Parallel()
	w := newPreemptiveWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	whole := 2 * time.Hour
	both := []running{{Job: w.submit(ann, mayLeave(8))}, {Job: w.submit(bob, mayLeave(8))}}
	w.pass(boot)
	for range 6 * 60 {
		for i := range both {
			r := &both[i]
			switch j := w.readJob(r.ID); {
			case j.State() == job.Scheduled:
				w.begin(r)
			case j.State() == job.Preempted:
				w.endAll(*r, stopped)
			case j.State() == job.Running && j.GPUTime/8+w.clock.Now().Sub(j.StartedAt) >= whole:
				w.endAll(*r, succeeded)
			}
		}
		w.pass(time.Minute)
	}
	for _, r := range both {
		j := w.readJob(r.ID)
		require.Equal(t, job.Completed, j.State())
		require.LessOrEqual(t, j.Preemptions, 3)
	}
}

// Who waits is looked at anew when the rules change, without a restart.
func TestRulesHoldWhenTheyAreChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	all := w.fill(ann)
	w.submit(bob, urgent(2))
	w.pass(time.Hour)
	require.Empty(t, w.leaving(all), "nobody leaves for others")
	rules := ledger.SchedulingConfig{Scheduling: ledger.Scheduling{Preemption: true, MinRuntime: time.Minute}}
	require.NoError(t, w.ledger.ChangeScheduling(t.Context(), rules))
	w.pass(time.Second)
	require.Len(t, w.leaving(all), 1)
}
