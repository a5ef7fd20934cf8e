package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// Work of two organizations is on one node at once only if the node keeps them apart as well
// as the pool asks; otherwise the later one waits until the other's is over and cleaned up.
func TestOrganizationsShareANodeThatKeepsThemApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	ours, theirs := w.mustAllocate(ann, 1), w.mustAllocate(bob, 1)
	w.pass(boot)
	on := w.readNodes(node.Ready)
	require.Len(t, on, 1, "they hold one GPU each of the same node")
	open := func(by ledger.Actor, id string, is capacity.Isolation) error {
		return w.ledger.OpenHold(t.Context(), by, id, on[0].ID, is)
	}
	require.NoError(t, open(ann, ours.ID, capacity.IsolationEnvironment), "nobody else's work is there")
	for _, is := range []capacity.Isolation{"", capacity.IsolationEnvironment} {
		var shared *ledger.SharedNodeError
		require.ErrorAs(t, open(bob, theirs.ID, is), &shared)
		require.Equal(t, ledger.SharedNodeError{NodeID: on[0].ID, Isolation: is}, *shared)
	}
	require.Empty(t, w.readAllocation(theirs.ID).Opened)
	require.NoError(t, open(ann, ours.ID, capacity.IsolationEnvironment), "it is there already")

	w.changePool(func(p *capacity.Pool) { p.Isolation = capacity.IsolationDevices })
	require.Error(t, open(bob, theirs.ID, capacity.IsolationUser))
	w.changePool(func(p *capacity.Pool) { p.Isolation = capacity.IsolationEnvironment })
	require.NoError(t, open(bob, theirs.ID, capacity.IsolationEnvironment))
	w.changePool(func(p *capacity.Pool) { p.Isolation = "" })
	require.Error(t, open(ann, ours.ID, capacity.IsolationEnvironment), "a node that keeps them apart no more")
	require.NoError(t, open(ann, ours.ID, capacity.IsolationUser))

	daemon := w.lookAt(on[0].ID).daemon
	_, err := w.ledger.Release(t.Context(), bob, theirs.ID)
	require.NoError(t, err)
	require.Error(t, open(ann, ours.ID, capacity.IsolationEnvironment), "what bob left may be there still")
	require.NoError(t, w.ledger.RecordCleaned(t.Context(), daemon, []ledger.Cleaned{{AllocationID: theirs.ID,
		Proof: "nothing is left"}}))
	require.NoError(t, open(ann, ours.ID, capacity.IsolationEnvironment))
}
