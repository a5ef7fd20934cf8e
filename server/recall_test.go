package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/server/auth"
)

// What is remembered of a good key opens nothing to another text.
func TestAGoodKeyIsNoHelpToAWrongOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.createKey("alice", "viewer")
	w.keys["bad"] = w.otherSecret("alice")
	ask := func(key string) int { return w.send(key, http.MethodGet, "/v1/whoami", "").Code }
	for range 3 {
		require.Equal(t, 200, ask("alice"))
		require.Equal(t, 401, ask("bad"))
	}
	require.Equal(t, 401, w.send("", http.MethodGet, "/v1/whoami", "", "Authorization",
		"Bearer "+w.keys["alice"]+"x").Code, "the whole text counts")
	_, err := w.ledger.RevokeKey(t.Context(), rootActor(), k.ID)
	require.NoError(t, err)
	require.Equal(t, 200, ask("alice"), "another process ended it: it is remembered")
	w.clock.Advance(auth.CacheFor)
	require.Equal(t, []int{401, 401}, []int{ask("alice"), ask("bad")}, "and no longer than this")
}
