package verbs_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/runtimes"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// counting is a store that counts what is read.
type counting struct {
	ledger.Store
	states, runs int // outside of transactions: of pools; of how long jobs ran
	jobs         int // in transactions: one by one, or many at once
	looks        int // outside of them: at jobs
}

func (s *counting) InTx(ctx context.Context, fn func(ledger.Tx) error) error {
	return s.Store.InTx(ctx, func(tx ledger.Tx) error { return fn(countingTx{tx, s}) })
}

type countingTx struct {
	ledger.Tx
	count *counting
}

func (t countingTx) Job(s ledger.Scope, id string) (job.Job, error) {
	t.count.jobs++
	return t.Tx.Job(s, id)
}

func (t countingTx) JobsByID(ids []string) (map[string]job.Job, error) {
	t.count.jobs++
	return t.Tx.JobsByID(ids)
}

func (s *counting) Read(ctx context.Context, fn func(ledger.Reader) error) error {
	return s.Store.Read(ctx, func(r ledger.Reader) error { return fn(countingReader{r, s}) })
}

type countingReader struct {
	ledger.Reader
	count *counting
}

func (r countingReader) LiveState(poolID string) (ledger.PoolState, error) {
	r.count.states++
	return r.Reader.LiveState(poolID)
}

func (r countingReader) JobRuns(organizationID, name string, most int) ([]runtimes.Run, error) {
	r.count.runs++
	return r.Reader.JobRuns(organizationID, name, most)
}

func (r countingReader) JobsByID(ids []string) (map[string]job.Job, error) {
	r.count.looks++
	return r.Reader.JobsByID(ids)
}

// Who stays apart from an array asks once which of those that have GPUs are of it, and so does who explains it.
func TestArraysAreReadAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	all := w.submitArray(ann, 0, nil, 0, 1, 2, 3, 4)
	w.doDueWork()
	apart := jobOf(1, func(c *ledger.JobCommand) { c.Job.Where.Apart = []string{all[0].Array.ID} })
	s := &counting{Store: w.store}
	l := verbs.New(s, &ids.UUID{}, ledger.Config{})
	first := w.submit(ann, apart)
	require.NoError(t, l.ScheduleJobs(t.Context(), w.pool.ID))
	require.Equal(t, job.Scheduled, w.readJob(first.ID).State())
	require.LessOrEqual(t, s.jobs, 1)
	for range 2 { // the rest of the nodes without the array
		w.submit(ann, apart)
	}
	w.doDueWork()
	waits := w.submit(ann, apart)
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(waits.ID).State())
	s.looks = 0
	e, err := l.ExplainJob(t.Context(), ann, waits.ID)
	require.NoError(t, err)
	require.LessOrEqual(t, s.looks, 3)
	at := slices.IndexFunc(e.Blockers, func(b ledger.Blocker) bool { return b.Code == "apart" })
	require.GreaterOrEqual(t, at, 0)
	require.Len(t, e.Blockers[at].Evidence, 5)
}

// A pool is planned many times a minute: what is ahead is foreseen once in a while, from what is remembered of runs.
func TestWhatIsAheadIsForeseenOnceInAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmUp(ann)
	w.teach(ann, "train", 10*time.Minute)
	w.runWarm(ann, named("train", 8))
	s := &counting{Store: w.store}
	l := verbs.New(s, &ids.UUID{}, ledger.Config{})
	look := func() (states, runs int) {
		s.states, s.runs = 0, 0
		require.NoError(t, l.ScheduleJobs(t.Context(), w.pool.ID))
		return s.states, s.runs
	}
	w.submit(ann, w.putOff(2, 2*time.Minute))
	w.clock.Set(w.clock.Now().Add(6 * time.Second)) // who came is predicted once
	look()
	at := w.clock.Now()
	for range 3 {
		w.clock.Set(w.clock.Now().Add(2 * time.Second))
		states, runs := look()
		require.Equal(t, 1, states, "the queue alone")
		require.Zero(t, runs)
	}
	require.Len(t, w.turns().Ahead, 1, "what was foreseen stays")
	w.clock.Set(at.Add(10 * time.Second))
	states, runs := look()
	require.Greater(t, states, 1)
	require.Zero(t, runs)
}

func (w *world) turns() (t ledger.JobTurns) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		t, err = r.JobTurns(w.pool.ID)
		return err
	})
	return t
}
