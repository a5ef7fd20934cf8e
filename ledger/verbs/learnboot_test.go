package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
)

// Workers that are not there when a node is asked for, or when its boot ends, are
// no property of the provider.
func TestOurOwnOutageIsNoBootTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.mustAllocate(ann, 2)
	w.pass(boot)
	require.Equal(t, []time.Duration{boot}, w.readLearned().Boot.Seen)

	w.mustAllocate(ann, 2)
	due, err := w.ledger.Dispatch(t.Context(), 100, time.Minute) // the plan
	require.NoError(t, err)
	for _, task := range due {
		task, err = w.ledger.ClaimTask(t.Context(), task.ID, task.Attempt, time.Hour)
		require.NoError(t, err)
		require.NoError(t, w.handleTask(task))
	}
	w.clock.Set(w.clock.Now().Add(8 * time.Minute)) // nobody asks the provider
	w.pass(boot)
	require.Len(t, w.readNodes(node.Ready), 2)
	require.Equal(t, []time.Duration{boot, boot}, w.readLearned().Boot.Seen, "from when it was asked")

	w.mustAllocate(ann, 2)
	w.doDueWork()
	w.clock.Set(w.clock.Now().Add(2*boot + 2*time.Minute)) // nobody looks
	w.doDueWork()
	require.Len(t, w.readNodes(node.Ready), 3)
	require.Len(t, w.readLearned().Boot.Seen, 2, "nobody saw when it was up")
	require.Zero(t, w.readLearned().Failures)
}
