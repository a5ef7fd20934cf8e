package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// The token that a machine is made with is the same however often the machine is asked for, works once, and is
// not revived by a request that comes again.
func TestATokenThatAMachineIsMadeWith(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	provide := func() string {
		made, text, err := f.minter.DeriveNode(f.nodes[0].ID, 1)
		require.NoError(t, err)
		require.NoError(t, f.ledger.ProvideJoinToken(t.Context(), ledger.SystemActor("test"), f.nodes[0].ID, made))
		return text.Reveal()
	}
	f.keys["made"] = provide()
	f.clock.Advance(ledger.ProvidedTokenLife - time.Minute)
	require.Equal(t, f.keys["made"], provide())
	require.Len(t, f.events(0, "node.join_token"), 1)
	f.clock.Advance(ledger.ProvidedTokenLife - time.Minute) // the second request counts
	f.keys["daemon"] = ask[contract.NodeJoined](f.world, "made", http.MethodPost, f.path(0, "join"),
		`{"boot_id":"boot"}`).Key
	f.sendBeat("daemon", 0, f.beat(0, 1, 1, "healthy"))
	provide()
	require.Equal(t, contract.CodeDaemonRefused, f.refuse("made", http.MethodPost, f.path(0, "join"),
		`{"boot_id":"boot"}`).Code)
	other, _, err := f.minter.DeriveNode(f.nodes[1].ID, 1)
	require.NoError(t, err)
	require.ErrorIs(t, f.ledger.ProvideJoinToken(t.Context(), ledger.Actor{Role: ledger.Admin}, f.nodes[1].ID, other),
		ledger.ErrDenied)
	again, _, err := f.minter.DeriveNode(f.nodes[0].ID, 2)
	require.NoError(t, err)
	require.NotEqual(t, other.ID, again.ID)
	f.end(0)
	require.NoError(t, f.ledger.ProvideJoinToken(t.Context(), ledger.SystemActor("test"), f.nodes[0].ID, again))
	require.Len(t, f.events(0, "node.join_token"), 1, "it is over")
}
