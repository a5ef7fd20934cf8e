package verbs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/runtimes"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// counting is a store that counts what is read outside of transactions.
type counting struct {
	ledger.Store
	states, runs int // of pools; of how long jobs ran
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
