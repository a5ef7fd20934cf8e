package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// A worker that runs is known to be there, for as long as it runs.
func TestAWorkerThatRunsIsKnown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		w := newRunningWorld(t, sameProvisioner)
		w.newExclusiveWorker("first")
		stop := w.runWorker()
		for range 4 {
			time.Sleep(time.Minute)
			_, gone := w.workersGone()
			require.False(t, gone)
		}
		require.NoError(t, stop())
		_, gone := w.workersGone()
		require.True(t, gone, "at once")
	})
}

// workersGone looks for workers at the bubble's time.
func (w *world) workersGone() (since time.Time, gone bool) {
	w.t.Helper()
	w.clock.Set(time.Now())
	require.NoError(w.t, w.store.Read(w.t.Context(), func(r ledger.Reader) (err error) {
		since, gone, err = ledger.WorkersGone(r)
		return err
	}))
	return since, gone
}
