package verbs_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// between is a store in which something happens once so many of its transactions are over.
type between struct {
	ledger.Store
	left   int
	happen func()
}

func (s *between) InTx(ctx context.Context, fn func(ledger.Tx) error) error {
	err := s.Store.InTx(ctx, fn)
	if s.left--; s.left == 0 {
		s.happen()
	}
	return err
}

// What was free for nobody becomes free while jobs behind the first are tried: it is still the first one's turn.
func TestWhoWasRefusedKeepsItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	w.warmNodes(4)
	w.mustAllocate(w.newPerson("eve"), 6)
	first := w.submit(ann, jobOf(2, nil))
	limit := func(gpus int) {
		_, err := w.setLimits(ann, quota.Limits{GPUs: gpus}, true)
		require.NoError(t, err)
	}
	limit(1)
	second := w.submit(bob, jobOf(2, nil))

	store := &between{Store: w.store, happen: func() { limit(2) }}
	l := verbs.New(store, &ids.UUID{}, ledger.Config{})
	_, err := l.Reserve(t.Context(), w.newPerson("carl"), ledger.ReserveRequest{Pool: "lab", GPUs: 1,
		Window: dayWindow(99)})
	require.NoError(t, err) // now its cache knows the pool
	store.left = 2          // the first finds out that the job needs a transaction of its own, which is the second
	require.NoError(t, l.ScheduleJobs(t.Context(), w.pool.ID))
	require.Equal(t, job.Scheduled, w.readJob(first.ID).State())
	require.Equal(t, job.Pending, w.readJob(second.ID).State())
}

// While GPUs are cleaned nobody is tried who would have them: whoever is tried at the moment at which they are clean
// would go before others.
func TestNobodyIsTriedOnGPUsThatAreCleaned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	pool := w.readPool()
	_, err := w.ledger.UpdatePool(t.Context(), operator, pool.ID, pool.DefinitionVersion, func(p *capacity.Pool) {
		p.Timers.Cleaning = time.Minute
	})
	require.NoError(t, err)
	w.mustAllocate(w.newPerson("eve"), 6)
	flo := w.newPerson("flo")
	held := w.mustAllocate(flo, 2)
	first := w.submit(ann, jobOf(2, nil))
	second := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	l, g := w.gatedLedger()
	require.NoError(t, l.ScheduleJobs(t.Context(), w.pool.ID)) // which keeps when they should start
	_, err = w.ledger.Release(t.Context(), flo, held.ID)
	require.NoError(t, err)
	g.transactions = 0
	require.NoError(t, l.ScheduleJobs(t.Context(), w.pool.ID))
	require.Zero(t, g.transactions)
	w.pass(2 * time.Minute)
	require.Equal(t, job.Scheduled, w.readJob(first.ID).State())
	require.Equal(t, job.Pending, w.readJob(second.ID).State())
}

// Jobs that admission refuses as it has refused others are not tried, or a look at the queue would take a transaction
// for each few of hundreds that do not end before a reservation begins.
func TestJobsThatAreRefusedAlikeAreTriedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	w.warmNodes(4)
	soon := w.clock.Now().Add(30 * time.Minute)
	w.mustReserve(w.newPerson("eve"), 8, calendar.Interval{Start: soon, End: soon.Add(time.Hour)})
	for range 40 {
		w.submit(ann, jobOf(1, nil))
	}
	short := w.submit(bob, jobOf(1, func(c *ledger.JobCommand) { c.Job.MaxRuntime = 10 * time.Minute }))
	l, g := w.gatedLedger()
	require.NoError(t, l.ScheduleJobs(t.Context(), w.pool.ID))
	require.Equal(t, job.Scheduled, w.readJob(short.ID).State())
	require.LessOrEqual(t, g.transactions, 4)
}

// Whose jobs nobody knows count as long as others' usually are: with a limit of an hour they would have to wait for all
// of somebody's short ones.
func TestANewcomerDoesNotWaitForAllShortJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	w.warmUp(ann)
	w.teach(ann, "short", 10*time.Second)
	var known []job.Job
	for range 24 {
		known = append(known, w.submit(ann, named("short", 8)))
	}
	w.clock.Set(w.clock.Now().Add(time.Second))
	newcomer := w.submit(bob, jobOf(8, nil))
	var queue []ledger.QueuedJob
	w.read(func(r ledger.Reader) (err error) {
		queue, err = w.ledger.QueueOf(r, w.pool.ID)
		return err
	})
	at := slices.IndexFunc(queue, func(q ledger.QueuedJob) bool { return q.ID == newcomer.ID })
	require.Less(t, at, len(known), "it is not the last")
	require.Contains(t, queue[at].Turn[0], "as others here usually are")
}
