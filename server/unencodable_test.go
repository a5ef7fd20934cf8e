package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// What cannot be encoded, such as a time of the year 10000, is no answer, and says so: alone and in a list.
func TestAnAnswerIsWholeOrAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pool := w.createPool()
	mine := ask[map[string]any](w, "root", http.MethodGet, "/v1/whoami", "")["organization_id"].(string)
	far := job.New(job.Job{ID: "job_far", OrganizationID: mine, PoolID: pool.ID, SubmittedBy: "key",
		Priority: job.Normal, Shape: capacity.Shape{Nodes: 1, PerNode: 1},
		NotBefore: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, true, w.clock.Now())
	require.NoError(t, w.ledger.Store().InTx(t.Context(), func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Jobs: []job.Job{far}})
	}))
	for _, path := range []string{"/v1/jobs/job_far", "/v1/jobs"} {
		out := w.send("root", http.MethodGet, path, "")
		require.Equal(t, http.StatusInternalServerError, out.Code, path)
		p := w.refuse("root", http.MethodGet, path, "")
		require.Equal(t, contract.CodeInternal, p.Code, path)
		require.Contains(t, w.log.String(), p.RequestID, path)
	}
}
