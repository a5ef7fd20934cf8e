package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/server"
)

// A token is shown with the address that the installation says it has.
func TestAJoinTokenSaysWhereToGo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, func(c *server.Config) { c.PublicURL = "https://gpu.example" })
	got := ask[contract.JoinToken](f.world, "root", http.MethodPost, f.path(0, "join-token"), "{}")
	require.Equal(t, "https://gpu.example", got.URL)
	f = newFleet(t)
	require.Empty(t, ask[contract.JoinToken](f.world, "root", http.MethodPost, f.path(0, "join-token"), "{}").URL)
}
