package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

// blinded is a cluster that cannot be looked at for a while; its nodes can be kept.
type blinded struct {
	*simcluster.Cluster
	blind atomic.Bool
}

func (b *blinded) Observe(ctx context.Context, since provisioners.Mark) (provisioners.Observation, error) {
	if b.blind.Load() {
		return provisioners.Observation{}, provisioners.Errorf(provisioners.KindTransient, "accounting is away")
	}
	return b.Cluster.Observe(ctx, since)
}

// watched is how well the cluster is watched.
func (w *clusterWorld) watched() ledger.Watched {
	return readFrom(w.world, func(r ledger.Reader) (ledger.Watched, error) { return r.Watched("simcluster") })
}

// Nodes are kept though no look succeeds, as soon as their cluster needs it: the job starts
// on the node that was warm for it. What it was is learned when the cluster can be seen.
func TestNodesAreKeptWhileNobodyCanLook(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	c := clusterConfig()
	c.SuspendTime = time.Minute // less than a failing task's longest pause
	cluster, err := simcluster.New(c, w.clock)
	require.NoError(t, err)
	eyes := &blinded{Cluster: cluster}
	w.cluster = cluster
	w.startWorker(parts{cloud: eyes})
	w.awaitPromise()
	eyes.blind.Store(true)
	w.driveUntil(w.nine.Add(2 * time.Minute))
	seen, err := w.cluster.Observe(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, seen.Work, 1)
	require.Equal(t, w.nine, seen.Work[0].StartedAt.UTC(), "its node was warm")
	require.False(t, w.watched().BlindSince.IsZero())
	troubles := readFrom(w.world, func(r ledger.Reader) (ledger.Troubles, error) { return w.ledger.Troubles(r) })
	require.Len(t, troubles, 1)
	require.Equal(t, ledger.TaskObserve, troubles[0].Kind)

	eyes.blind.Store(false)
	w.driveUntil(w.nine.Add(5 * time.Minute))
	require.True(t, w.watched().BlindSince.IsZero())
	jobs := w.starts(w.actor.OrganizationID)
	require.Len(t, jobs, 1)
	require.Equal(t, []string{w.promiseOf(w.nine).ID}, jobs[0].Reservations)
	w.requireScore(1, 1)
}

// Work that uses no GPU takes the warm node. The promise moves to another one, in time.
func TestAPromiseMovesFromANodeWithCPUWork(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	promise := w.awaitPromise()
	_, err := w.cluster.Submit(simcluster.Job{Name: "cpu", Account: "physics", CPUOnly: true, Length: 2 * time.Hour})
	require.NoError(t, err)
	w.driveUntil(w.nine.Add(-time.Second))
	moved := w.promiseOf(w.nine)
	require.Equal(t, reservation.Ready, moved.State())
	require.NotEqual(t, promise.Slots, moved.Slots)
	taken := 0
	for _, n := range w.readNodes() {
		if n.Taken == node.TakenByWork {
			taken++
		}
	}
	require.Equal(t, 1, taken)
}

// unwatching is a provisioner that is configured with use: reserved now.
type unwatching struct{ provisioners.Provisioner }

// What ran in a cluster that nobody watches any more counts as ended: at once where its
// provisioner is used in another way, and when no worker has told of it for a day.
func TestWorkEndsWhenNobodyWatches(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		w := newClusterWorld(t)
		_, err := w.cluster.Submit(simcluster.Job{Name: "long", Account: "vision", Length: 100 * time.Hour})
		require.NoError(t, err)
		w.driveFor(10 * time.Minute)
		require.Equal(t, allocation.Active, w.starts(w.actor.OrganizationID)[0].State())
		if gone {
			require.NoError(t, w.ledger.ReportOffers(t.Context(), "simcluster", nil))
			w.startWorker(parts{}) // it knows the other cloud alone
			w.driveFor(time.Hour)
			require.Equal(t, allocation.Active, w.starts(w.actor.OrganizationID)[0].State(), "another worker may watch")
			w.driveFor(25 * time.Hour)
		} else {
			w.startWorker(parts{cloud: unwatching{w.cluster}})
			w.driveFor(10 * time.Minute)
		}
		ended := w.starts(w.actor.OrganizationID)[0]
		require.Equal(t, allocation.Released, ended.State())
		require.Equal(t, "unwatched", ended.Reason)
	}
}
