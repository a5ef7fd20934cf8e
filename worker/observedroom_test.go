package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

// What is free on the nodes of a cluster that are up is known, whoever made them boot, and no
// more once nobody looks.
func TestTheRoomOfAClusterIsKnown(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	seen, fresh := w.watched().RoomOf(w.pool.ID, w.clock.Now())
	require.False(t, fresh, "nobody has looked yet: %v", seen)
	for _, gpus := range []int{3, 8} {
		_, err := w.cluster.Submit(simcluster.Job{Name: "plain", Account: "physics", GPUs: gpus, Length: 2 * time.Hour})
		require.NoError(t, err)
	}
	w.driveFor(5 * time.Minute)
	seen, fresh = w.watched().RoomOf(w.pool.ID, w.clock.Now())
	require.True(t, fresh)
	require.Equal(t, []ledger.SharedNodes{{Free: 5, Nodes: 1}}, seen.Shared, "the full node has none")
	require.Zero(t, seen.Idle, "the others are off")
	_, fresh = w.watched().RoomOf(w.pool.ID, seen.At.Add(ledger.RoomFor+time.Second))
	require.False(t, fresh)
}
