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

// No start is predicted of a job while nobody is there who would start it.
func TestNoStartIsPredictedWithoutAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Ledger = verbs.New(c.Ledger.Store(), ids.UUID{}, ledger.Config{WorkersApart: true})
	})
	made := w.createPool()
	id := ask[contract.JobsSubmitted](w, "root", http.MethodPost, "/v1/jobs", `{"pool":"lab","gpus":1,"command":["true"]}`,
		"Idempotency-Key", "one").Jobs[0].ID
	look := func() []contract.Job {
		return append(ask[contract.List[contract.Job]](w, "root", http.MethodGet, "/v1/queue?pool=lab", "").Items,
			ask[contract.Job](w, "root", http.MethodGet, "/v1/jobs/"+id+"?position=true", ""))
	}
	missing := func(since time.Time) string {
		return ledger.NoWorkerSince(since, w.clock.Now()) + "; nothing is started before one is there"
	}
	require.Len(t, look(), 2)
	for _, j := range look() {
		require.Equal(t, missing(made.CreatedAt), j.Unpredicted)
		require.Nil(t, j.PredictedStart)
	}
	require.NoError(t, w.ledger.NoteWorker(t.Context(), ledger.Worker{ID: "one", Host: "h"}, time.Minute))
	seen := w.clock.Now()
	for _, j := range look() {
		require.NotContains(t, j.Unpredicted, "worker")
	}
	w.clock.Set(seen.Add(time.Hour))
	for _, j := range look() {
		require.Equal(t, missing(seen), j.Unpredicted)
	}
}
