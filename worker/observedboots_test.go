package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

// bringBack is what the adapter says of a node that does not boot.
const bringBack = "node gpu-8-1 is DOWN (ResumeTimeout reached); scontrol update NodeName=gpu-8-1 State=RESUME"

// unbootable is a cluster of which no node boots for a while.
type unbootable struct {
	*simcluster.Cluster
	broken atomic.Bool
}

func (u *unbootable) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	found, err := u.Cluster.Get(ctx, id)
	if err == nil && u.broken.Load() {
		found.Phase = provisioners.Terminated
		found.Notice = &provisioners.Notice{Kind: provisioners.NoticeDegraded, Message: bringBack}
	}
	return found, err
}

// evidenceOf is what an explanation has for a code.
func evidenceOf(e ledger.Explanation, code string) []string {
	for _, b := range e.Blockers {
		if b.Code == code {
			return append([]string{b.Message}, b.Evidence...)
		}
	}
	return nil
}

// Whoever looks at a node that did not boot, at its pool, or at why a promise is late is told
// the line that brings the node back, and a tenant is not.
func TestANodeThatDoesNotBootIsNamed(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	cloud := &unbootable{Cluster: w.cluster}
	cloud.broken.Store(true)
	w.startWorker(parts{cloud: cloud})
	w.reserveDaily()
	w.driveUntil(w.nine.Add(-time.Second))
	first := w.readNodes()[0]
	require.Equal(t, node.Gone, first.State())
	lost := readFrom(w.world, func(r ledger.Reader) ([]ledger.Event, error) {
		return r.Events(ledger.Scope{All: true}, ledger.EventFilter{Subject: first.ID, Type: "node.lost"}, 10)
	})
	require.Len(t, lost, 1)
	require.Equal(t, "boot_failed", lost[0].Reason)
	require.Contains(t, lost[0].Message, bringBack)

	of, err := w.ledger.ExplainNode(t.Context(), w.actor, first.ID)
	require.NoError(t, err)
	require.Contains(t, of.Summary, bringBack)
	pool, err := w.ledger.ExplainPool(t.Context(), w.actor, "cluster")
	require.NoError(t, err)
	require.Contains(t, pool.Summary, "1 promise late")
	require.Contains(t, evidenceOf(pool, "boot_failed")[1], bringBack)
	member := w.actor
	member.Role = ledger.Member
	theirs, err := w.ledger.ExplainPool(t.Context(), member, "cluster")
	require.NoError(t, err)
	require.Contains(t, theirs.Summary, "1 promise late")
	require.Empty(t, evidenceOf(theirs, "boot_failed"))
	failing := readFrom(w.world, func(r ledger.Reader) (*ledger.Trouble, error) {
		state, err := r.LiveState(w.pool.ID)
		if err != nil {
			return nil, err
		}
		all, err := w.ledger.Troubles(r)
		return all.In(state), err
	})
	require.NotNil(t, failing)
	require.Contains(t, failing.Message, bringBack)

	cloud.broken.Store(false)
	w.driveFor(2 * time.Hour)
	troubles := readFrom(w.world, func(r ledger.Reader) (ledger.Troubles, error) { return w.ledger.Troubles(r) })
	require.Empty(t, troubles, "none has failed for an hour")
}

// A pool says why promises wait: it keeps no more nodes warm than it may.
func TestAnObservedPoolSaysThatItIsFull(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	for range 4 {
		_, err := w.ledger.Reserve(t.Context(), w.actor, reserveAt(w, w.nine))
		require.NoError(t, err)
	}
	more := reserveAt(w, w.nine)
	more.Queue = true
	queued, err := w.ledger.Reserve(t.Context(), w.actor, more)
	require.NoError(t, err)
	require.Equal(t, reservation.Waitlisted, queued.State())
	pool, err := w.ledger.ExplainPool(t.Context(), w.actor, "cluster")
	require.NoError(t, err)
	require.Contains(t, evidenceOf(pool, "max_nodes"), queued.ID)
}

// A node that is drained is let go at once, and its slot with it: nobody has to prove that
// a machine of ours is gone.
func TestADrainedNodeOfAClusterLeavesAtOnce(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.awaitPromise()
	warm := w.readNodes()[0]
	_, err := w.ledger.DrainNode(t.Context(), w.actor, warm.ID, "")
	require.NoError(t, err)
	w.doDueWork()
	require.Equal(t, node.Gone, w.readNodes()[0].State())
	seen, err := w.cluster.Observe(t.Context(), "")
	require.NoError(t, err)
	for _, n := range seen.Nodes {
		require.NotEqual(t, warm.ProviderID, n.InstanceID)
	}
}
