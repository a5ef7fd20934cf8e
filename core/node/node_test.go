package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
)

var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func TestANodesWholeLife(t *testing.T) {
	t.Parallel()
	n := node.New("n", "pool", 3, 2, now)
	require.Equal(t, node.Requested, n.State())
	require.False(t, n.Billed(), "nothing was asked of the provider")
	for i, step := range []struct {
		event          node.Event
		coming, billed bool
	}{
		{node.Provision, true, true},
		{node.Boot, true, true},
		{node.BecomeReady, false, true},
		{node.Drain, false, true},
		{node.Resume, false, true},
		{node.Quarantine, false, true},
		{node.Retire, false, true},
		{node.GiveUp, false, true},
		{node.Retire, false, true},
		{node.Confirm, false, false},
	} {
		var err error
		n, err = n.Apply(step.event, "because", now.Add(time.Duration(i+1)*time.Minute))
		require.NoError(t, err)
		require.Equal(t, step.coming, n.Coming(), step.event)
		require.Equal(t, step.billed, n.Billed(), step.event)
		if step.event == node.Resume {
			require.Empty(t, n.Reason, "why it was taken out of use")
			continue
		}
		require.Equal(t, "because", n.Reason)
	}
	minute := func(n int) time.Time { return now.Add(time.Duration(n) * time.Minute) }
	require.Equal(t, now, n.RequestedAt)
	require.Equal(t, minute(2), n.BootingAt)
	require.Equal(t, minute(3), n.ReadyAt, "the first time")
	require.Equal(t, minute(5), n.IdleSince, "the last time")
	require.Equal(t, minute(7), n.RetiredAt, "the first time")
	require.Equal(t, minute(10), n.GoneAt)
}

func TestARefusedNodeWasNeverBilled(t *testing.T) {
	t.Parallel()
	n := node.New("n", "pool", 0, 1, now)
	n, err := n.Apply(node.Provision, "", now)
	require.NoError(t, err)
	n, err = n.Apply(node.Refuse, "capacity", now)
	require.NoError(t, err)
	require.False(t, n.Billed())
	require.Equal(t, now, n.GoneAt)
}
