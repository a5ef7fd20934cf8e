package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server"
)

// A pool tells since when no worker looks after it: since it was made, if none ever did.
func TestAPoolTellsThatNoWorkerIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Ledger = verbs.New(c.Ledger.Store(), ids.UUID{}, ledger.Config{WorkersApart: true})
	})
	made := w.createPool()
	show := func() contract.Pool { return ask[contract.Pool](w, "root", http.MethodGet, "/v1/pools/lab", "") }
	require.Equal(t, made.CreatedAt, show().NoWorkerSince)
	require.NoError(t, w.ledger.NoteWorker(t.Context(), ledger.Worker{ID: "one", Host: "h"}, time.Minute))
	require.Zero(t, show().NoWorkerSince)
	seen := w.clock.Now()
	w.clock.Set(seen.Add(time.Hour))
	require.Equal(t, seen.UTC(), show().NoWorkerSince)
}
