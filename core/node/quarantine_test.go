package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
)

// Each stay in quarantine has a span of its own, open while it lasts, and ends
// whichever way the node leaves. What an operator wanted of one does not last
// into the next.
func TestQuarantinesAreSpans(t *testing.T) {
	t.Parallel()
	minute := func(n int) time.Time { return now.Add(time.Duration(n) * time.Minute) }
	n, err := node.Restore(node.New("n", "pool", 0, 1, now), node.Ready)
	require.NoError(t, err)
	n.Quarantine.WarnedAt = now
	apply := func(event node.Event, at int) {
		t.Helper()
		before := n.Quarantine
		n, err = n.Apply(event, "because", minute(at))
		require.NoError(t, err)
		for i := range before.Spans {
			require.Equal(t, before.Spans[i].Start, n.Quarantine.Spans[i].Start)
		}
	}
	require.Zero(t, n.Quarantine.Since())
	apply(node.Drain, 1)
	require.Equal(t, now, n.Quarantine.WarnedAt, "no quarantine begins or ends")
	apply(node.Resume, 2)
	n.Quarantine.Kept = true
	require.False(t, n.Kept(), "it is in none")
	apply(node.Quarantine, 3)
	require.Equal(t, node.Quarantines{Spans: []calendar.Interval{{Start: minute(3)}}}, n.Quarantine)
	require.Equal(t, minute(3), n.Quarantine.Since())
	require.False(t, n.Kept())
	n.Quarantine.Kept, n.Quarantine.Resuming = true, true
	require.True(t, n.Kept())
	open := n
	apply(node.Resume, 5)
	require.Equal(t, node.Quarantines{Spans: []calendar.Interval{{Start: minute(3), End: minute(5)}}}, n.Quarantine)
	require.Zero(t, n.Quarantine.Since())
	require.Equal(t, minute(3), open.Quarantine.Since(), "the node before the event is not changed")
	apply(node.Quarantine, 8)
	require.Equal(t, minute(8), n.Quarantine.Since())
	apply(node.Lose, 9)
	require.Equal(t, node.Quarantines{Spans: []calendar.Interval{
		{Start: minute(3), End: minute(5)}, {Start: minute(8), End: minute(9)},
	}}, n.Quarantine)
}

func TestANodeThatLostItsSpansLeavesQuarantine(t *testing.T) {
	t.Parallel()
	n, err := node.Restore(node.New("n", "pool", 0, 1, now), node.Quarantined)
	require.NoError(t, err)
	n, err = n.Apply(node.Resume, "", now)
	require.NoError(t, err)
	require.Empty(t, n.Quarantine.Spans)
}

func TestOnlyKnownStatesAreRestored(t *testing.T) {
	t.Parallel()
	_, err := node.Restore(node.New("n", "pool", 0, 1, now), "asleep")
	require.ErrorContains(t, err, `node n: unknown state "asleep"`)
	for _, s := range []node.State{node.Requested, node.Gone} {
		n, err := node.Restore(node.New("n", "pool", 0, 1, now), s)
		require.NoError(t, err)
		require.Equal(t, s, n.State())
	}
}
