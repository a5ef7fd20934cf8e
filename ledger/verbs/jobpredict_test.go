package verbs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// named is a job of so many GPUs, which may run for four hours.
func named(name string, gpus int) ledger.JobCommand {
	return jobOf(gpus, func(c *ledger.JobCommand) { c.Job.Name, c.Job.MaxRuntime = name, 4*time.Hour })
}

// Where nothing is known of how long jobs run, nothing is said but why.
func TestWithoutHistoryNoStartIsPredicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.run(ann, named("train", 8))
	w.submit(ann, named("train", 8))
	w.submit(ann, jobOf(1, func(c *ledger.JobCommand) {
		c.Job.Dependencies = []job.Depends{{JobID: r.ID, Condition: job.AfterOK}}
	}))
	w.pass(time.Minute)
	queue := w.queue()
	require.Len(t, queue, 2)
	require.Nil(t, queue[0].Start)
	require.Contains(t, queue[0].Unpredicted, "too few jobs")
	require.Nil(t, queue[1].Start)
	require.Equal(t, "it waits for another job", queue[1].Unpredicted)
	runs := w.readJob(r.ID)
	w.read(func(reader ledger.Reader) error {
		end, why, err := w.ledger.PredictEnd(reader, runs)
		require.Nil(t, end)
		require.Contains(t, why, "fewer than three")
		return err
	})
}

// What has run before says when a job that runs is over, and when the one behind it starts.
func TestStartsArePredictedFromRunsLikeThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	wait := boot
	next := func() running {
		r := running{Job: w.submit(ann, named("train", 8))}
		w.pass(wait)
		w.begin(&r)
		wait = time.Second // its nodes are warm by now
		return r
	}
	for range 4 {
		r := next()
		w.pass(10 * time.Minute)
		w.endAll(r, succeeded)
	}
	r := next()
	behind, third := w.submit(ann, named("train", 8)), w.submit(ann, named("train", 8))
	w.pass(4 * time.Minute)
	runs := w.readJob(r.ID)
	began := runs.StartedAt
	w.read(func(reader ledger.Reader) error {
		end, why, err := w.ledger.PredictEnd(reader, runs)
		require.NotNil(t, end, why)
		require.WithinDuration(t, began.Add(10*time.Minute), end.P50, time.Minute)
		require.Contains(t, end.Basis, "train")
		return err
	})
	queue := w.queue()
	require.Equal(t, []string{behind.ID, third.ID}, []string{queue[0].ID, queue[1].ID})
	require.NotNil(t, queue[0].Start, queue[0].Unpredicted)
	require.NotNil(t, queue[1].Start, queue[1].Unpredicted)
	require.WithinDuration(t, began.Add(10*time.Minute), queue[0].Start.P50, time.Minute)
	require.WithinDuration(t, began.Add(20*time.Minute), queue[1].Start.P50, 2*time.Minute)
	require.False(t, queue[0].Start.P90.Before(queue[0].Start.P50))
}

// warmUp boots all nodes.
func (w *world) warmUp(who ledger.Actor) {
	w.Helper()
	w.endAll(w.run(who, named("warm-up", 8)), succeeded)
}

// runWarm runs a job on nodes that are up.
func (w *world) runWarm(who ledger.Actor, c ledger.JobCommand) running {
	w.Helper()
	r := running{Job: w.submit(who, c)}
	w.pass(time.Second)
	w.begin(&r)
	return r
}

// teach runs jobs of a name, each for so long and on all GPUs.
func (w *world) teach(who ledger.Actor, name string, length time.Duration) {
	w.Helper()
	for range 3 {
		r := w.runWarm(who, named(name, 8))
		w.pass(length)
		w.endAll(r, succeeded)
		w.doDueWork()
	}
}

// Of two jobs with the same limit the one goes first whose like have run for less.
func TestWhoIsPredictedToBeShortGoesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmUp(ann)
	w.teach(ann, "train", 2*time.Hour)
	w.teach(ann, "eval", 2*time.Minute)
	all := w.runWarm(ann, named("train", 8))
	long, short := w.submit(ann, named("train", 8)), w.submit(ann, named("eval", 8))
	w.pass(time.Minute)
	queue := w.queue()
	require.Equal(t, []string{short.ID, long.ID}, []string{queue[0].ID, queue[1].ID})
	e, err := w.ledger.ExplainJob(t.Context(), ann, long.ID)
	require.NoError(t, err)
	require.Contains(t, e.Blockers[0].Evidence, "it counts as 2h long, by 3 runs of train on 8 GPUs by this person")
	w.endAll(all, succeeded)
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(short.ID).State())
	require.Equal(t, job.Pending, w.readJob(long.ID).State())
}

// Nobody leaves who is predicted to have ended by the time by which it would have to: it is waited for.
func TestWhoEndsSoonDoesNotLeave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		length time.Duration
		leaves bool
	}{"ends within the grace": {12 * time.Minute, false}, "takes for longer": {2 * time.Hour, true}} {
		w := newPreemptiveWorld(t)
		ann := w.newSubmitter("ann")
		w.warmUp(ann)
		w.teach(ann, "train", c.length)
		low := named("train", 8)
		low.Job.Priority, low.Preemptible = job.Low, new(true)
		r := w.runWarm(ann, low)
		w.pass(10*time.Minute + 30*time.Second)
		x := w.submit(ann, urgent(8))
		w.pass(time.Minute)
		require.Equal(t, c.leaves, len(w.leaving([]running{r})) == 1, name)
		if !c.leaves {
			w.endAll(r, succeeded)
			w.doDueWork()
			require.Equal(t, job.Scheduled, w.readJob(x.ID).State())
		}
	}
}

// Both who waits and who is waited for are told of it; and what has not ended when it was predicted to is told to leave
// at that moment, whatever is predicted by then.
func TestWhoIsWaitedForIsToldToLeaveInTime(t *testing.T) {
	t.Parallel()
	w := newPreemptiveWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	w.warmUp(ann)
	w.teach(ann, "train", 12*time.Minute)
	low := named("train", 8)
	low.Job.Priority, low.Preemptible = job.Low, new(true)
	r := w.runWarm(ann, low)
	w.pass(10*time.Minute + 30*time.Second)
	own, others := w.submit(ann, urgent(8)), w.submit(bob, jobOf(8, nil))
	w.pass(time.Second)
	until := w.readJob(r.ID).Awaited.Until
	require.WithinDuration(t, r.StartedAt.Add(12*time.Minute), until, 10*time.Second)
	require.Equal(t, own.ID, w.readJob(r.ID).Awaited.For)
	by := ledger.FormatTimeSeen(until, w.clock.Now())
	awaits := w.blockerOf(ann, own.ID, "awaited")
	require.Equal(t, "It waits for job "+r.ID+", which is predicted to end by "+by+"; else it is told to leave then.",
		awaits.Message)
	require.Equal(t, until, awaits.ClearsAt.P90)
	require.Empty(t, w.blockerOf(bob, others.ID, "awaited"))
	why, err := w.ledger.ExplainJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.Equal(t, "job "+own.ID+" waits for its GPUs: it is predicted to end by "+by+
		", and is told to leave then if it has not", why.Next[0].Message)
	require.Equal(t, until, why.Next[0].At)
	_, err = w.ledger.CancelJob(t.Context(), ann, own.ID)
	require.NoError(t, err)
	why, err = w.ledger.ExplainJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.Empty(t, why.Next, "nobody waits any more, as far as was seen")
	w.doDueWork()
	require.Equal(t, job.Awaited{For: others.ID, Until: until}, w.readJob(r.ID).Awaited, "not for longer")
	why, err = w.ledger.ExplainJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.Contains(t, why.Next[0].Message, "a job that goes before it waits for its GPUs")
	require.Contains(t, w.blockerOf(bob, others.ID, "awaited").Message, "It waits for a job of another organization")
	w.pass(until.Sub(w.clock.Now()) - time.Second)
	require.Empty(t, w.leaving([]running{r}))
	w.pass(time.Second)
	require.Len(t, w.leaving([]running{r}), 1)
	require.Equal(t, until, w.readJob(r.ID).Ending.Asked)
	require.Empty(t, w.readJob(r.ID).Ending.For)
	room, err := w.ledger.ExplainJob(t.Context(), bob, others.ID)
	require.NoError(t, err)
	require.Contains(t, room.Summary, "1 job leaves for it: ")
}

// A job that is not over before a reservation begins, with the time that it has to end, is not predicted to start
// before it.
func TestNoStartIsPredictedBeforeAReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	wait := boot
	for range 4 {
		r := running{Job: w.submit(ann, named("train", 8))}
		w.pass(wait)
		w.begin(&r)
		w.pass(time.Minute)
		w.endAll(r, succeeded)
		wait = time.Second // its nodes are warm by now
	}
	r := w.reserveHour(bob, 12*time.Minute, 8)
	short := named("train", 8)
	short.Job.MaxRuntime = 10 * time.Minute
	w.submit(ann, short)
	w.pass(time.Second)
	queue := w.queue()
	require.Len(t, queue, 1, "it takes up to two and a half minutes to end")
	require.NotNil(t, queue[0].Start, queue[0].Unpredicted)
	require.False(t, queue[0].Start.P10.Before(r.Window.End), queue[0].Start)
}

// slow is a store of which each look takes so long.
type slow struct {
	ledger.Store
	clock *clock.Manual
	takes time.Duration
}

func (s slow) Read(ctx context.Context, fn func(ledger.Reader) error) error {
	defer func() { s.clock.Set(s.clock.Now().Add(s.takes)) }()
	return s.Store.Read(ctx, fn)
}

// A start is predicted at the moment at which the queue is looked at for it, which may be long after it was decided on.
func TestAStartIsPredictedWhenItIsLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmUp(ann)
	w.teach(ann, "train", 10*time.Minute)
	first := w.runWarm(ann, named("train", 8))
	behind := running{Job: w.submit(ann, named("train", 8))}
	decided := w.clock.Now()
	l := verbs.New(slow{w.store, w.clock, 20 * time.Second}, &ids.UUID{}, ledger.Config{})
	require.NoError(t, l.ScheduleJobs(t.Context(), w.pool.ID))
	w.pass(8 * time.Minute)
	w.endAll(first, succeeded)
	w.pass(time.Second)
	w.begin(&behind)
	w.read(func(r ledger.Reader) error {
		scores, err := r.JobPredictions(ledger.Scope{All: true}, decided, w.clock.Now().Add(time.Second))
		require.NoError(t, err)
		require.Equal(t, 1, scores[0].Starts.N)
		require.LessOrEqual(t, scores[0].Starts.Measured, behind.StartedAt.Sub(decided)-20*time.Second)
		return nil
	})
}

// What was predicted of a job that was held or edited since then is not scored: it was said of something else.
func TestStartsOfChangedJobsAreNotScored(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, ledger.Actor, string){
		"held": func(w *world, who ledger.Actor, id string) {
			w.mustHold(who, id)
			w.pass(time.Minute)
			w.mustRelease(who, id)
		},
		"edited": func(w *world, who ledger.Actor, id string) {
			runtime := 50 * time.Minute
			_, err := w.edit(who, id, ledger.JobEdit{MaxRuntime: &runtime})
			require.NoError(w, err)
		},
	} {
		w := newWorld(t)
		ann := w.newSubmitter("ann")
		w.warmUp(ann)
		w.teach(ann, "train", 10*time.Minute)
		first := w.runWarm(ann, named("train", 8))
		behind := running{Job: w.submit(ann, named("train", 8))}
		w.pass(time.Minute)
		change(w, ann, behind.ID)
		w.pass(8 * time.Minute)
		w.endAll(first, succeeded)
		w.pass(time.Second)
		w.begin(&behind)
		w.read(func(r ledger.Reader) error {
			scores, err := r.JobPredictions(ledger.Scope{All: true}, first.SubmittedAt, w.clock.Now().Add(time.Second))
			for _, s := range scores {
				require.Zero(t, s.Starts.N, name)
			}
			return err
		})
	}
}

// The first prediction of a start is kept, and scored by when the job began.
func TestPredictedStartsAreScored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmUp(ann)
	for range 4 {
		r := w.runWarm(ann, named("train", 8))
		w.pass(10 * time.Minute)
		w.endAll(r, succeeded)
	}
	first := w.runWarm(ann, named("train", 8))
	from := w.readJob(first.ID).SubmittedAt
	behind := running{Job: w.submit(ann, named("train", 8))}
	w.pass(time.Minute)
	said := w.queue()[0]
	require.Equal(t, behind.ID, said.ID)
	require.NotNil(t, said.Start)
	w.pass(time.Minute)
	w.pass(9 * time.Minute)
	w.endAll(first, succeeded)
	w.pass(time.Second)
	w.begin(&behind)
	began := w.readJob(behind.ID).StartedAt
	w.read(func(r ledger.Reader) error {
		scores, err := r.JobPredictions(ledger.Scope{All: true}, from, began.Add(time.Second))
		require.NoError(t, err)
		require.Len(t, scores, 1)
		starts := scores[0].Starts
		require.Equal(t, 1, starts.N, "that alone which had to wait")
		require.InDelta(t, began.Sub(said.Start.P50).Abs().Seconds(), starts.Error.Seconds(), 120)
		require.Positive(t, starts.Measured)
		require.Less(t, starts.Error, starts.Measured)
		return nil
	})
}

// Who waits because the organization holds all that it may is told so, and when it starts: once that has ended.
func TestAStartBehindTheQuotaIsPredicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.giveKey(w.newLimitedPerson("ann", quota.Limits{GPUs: 4}), "ann")
	w.warmUp(w.newSubmitter("bob"))
	for range 3 {
		r := w.runWarm(ann, named("train", 4))
		w.pass(10 * time.Minute)
		w.endAll(r, succeeded)
		w.doDueWork()
	}
	r := w.runWarm(ann, named("train", 4))
	began := w.readJob(r.ID).StartedAt
	w.submit(ann, named("train", 4))
	for _, later := range []time.Duration{time.Second, time.Minute} {
		w.pass(later)
		queue := w.queue()
		require.Len(t, queue, 1)
		require.Equal(t, ledger.WaitsForQuota, queue[0].Code)
		require.Equal(t, "its organization has 4 GPUs here, and may have 4 at once", queue[0].Detail)
		require.NotNil(t, queue[0].Start, queue[0].Unpredicted)
		require.WithinDuration(t, began.Add(10*time.Minute), queue[0].Start.P50, time.Minute)
	}
}
