package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// A node that is not proved clean says what it waits for, since when, and what to do.
func TestANodeThatIsNotCleanSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resizePool(1)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	ours := w.mustAllocate(ann, 1)
	w.mustAllocate(bob, 1)
	w.pass(boot)
	on := w.readNodes(node.Ready)[0].ID
	daemon := w.lookAt(on).daemon
	explain := func(by ledger.Actor) []ledger.Blocker {
		e, err := w.ledger.ExplainNode(t.Context(), by, on)
		require.NoError(t, err)
		return e.Blockers
	}
	require.NoError(t, w.ledger.OpenHold(t.Context(), ann, ours.ID, on, capacity.IsolationDevices))
	require.Empty(t, explain(operator))
	_, err := w.ledger.Release(t.Context(), ann, ours.ID)
	require.NoError(t, err)
	back := w.clock.Now()
	require.Contains(t, w.lastMessage("allocation.released"), "; what ran on 1 node is cleaned up next")
	got := explain(operator)
	require.Len(t, got, 1)
	require.Equal(t, ledger.ReasonNotClean, got[0].Code)
	require.Equal(t, "1 GPU not proved clean: nobody gets them before the node's daemon has proved that nothing of "+
		"allocation "+ours.ID+" is left; without that proof by "+ledger.FormatTime(back.Add(learned.CleanWithin))+
		" the node is quarantined", got[0].Message)
	require.Contains(t, got[0].Evidence[0], ledger.FormatTime(back))
	require.Equal(t, back.Add(learned.CleanWithin), got[0].ClearsAt.P90)
	for _, b := range explain(bob) {
		require.NotContains(t, b.Message, ours.ID, "whose it was is not his to know")
	}

	w.pass(learned.CleanWithin + time.Second)
	got = explain(operator)
	require.Contains(t, got[0].Message, "goes on trying; resume awaits its proof anew for 2m, drain gives the machine up")
	require.Equal(t, "forewarm nodes resume "+on+" (or drain)", got[0].Fix)
	require.Contains(t, got[0].Evidence[1], "its daemon has not proved it within 2m")
	require.Nil(t, got[0].ClearsAt, "time alone does not help")
	got = explain(bob)
	require.Contains(t, got[0].Message, "ask an operator")
	require.Empty(t, got[0].Fix)
	require.Len(t, got[0].Evidence, 1)

	w.ledger = w.restartedLedger() // which knows no more than is stored
	require.Equal(t, got, explain(bob))
	w.proveClean(daemon, ledger.Cleaned{AllocationID: ours.ID, Proof: "nothing is left"})
	require.Empty(t, explain(operator))
}
