package server_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// The queue of a pool is bounded: the last place is given, what is beyond it is refused as a whole and may be tried
// again, and a job that is over makes room for one.
func TestTheLastPlaceInAQueue(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	array := func(n int) string {
		return fmt.Sprintf(`{"pool":%q,"command":["true"],"hold":true,"array":{"last":%d}}`, f.pool, n-1)
	}
	const atOnce = 1_000 // a request has its time
	for n := ledger.MostJobsOfOne - 1; n > 0; n -= atOnce {
		f.submit("root", array(min(n, atOnce)))
	}
	refused := f.refuse("root", http.MethodPost, "/v1/jobs", array(2), "Idempotency-Key", "two")
	require.Equal(t, contract.CodeQueueFull, refused.Code)
	require.Equal(t, http.StatusConflict, refused.Status)
	require.True(t, refused.Retryable)
	require.Contains(t, refused.Detail, fmt.Sprint(ledger.MostJobsOfOne))
	require.Equal(t, ledger.MostJobsOfOne-1, f.countJobs("").Held, "nothing of it is there")

	last := f.submit("root", array(1))[0]
	one := `{"pool":"` + f.pool + `","command":["true"]}`
	for _, path := range []string{"/v1/jobs", "/v1/jobs?dry_run=true"} {
		refused = f.refuse("root", http.MethodPost, path, one, "Idempotency-Key", "one"+path)
		require.Equal(t, contract.CodeQueueFull, refused.Code, path)
	}
	ask[contract.Job](f.world, "root", http.MethodPost, "/v1/jobs/"+last.ID+"/cancel", "")
	f.submit("root", one)
	require.Equal(t, contract.CodeQueueFull, f.refuse("root", http.MethodPost, "/v1/jobs", one, "Idempotency-Key",
		"another").Code)
}

// A dry run of a submission tells when the job would start, by the queue as it would be with it, and leaves nothing.
func TestADryRunForeseesTheStart(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t)
	body := `{"pool":"` + f.pool + `","command":["true"],"gpus":1}`
	first := f.submit("root", body)[0]
	got := ask[contract.JobsSubmitted](f.world, "root", http.MethodPost, "/v1/jobs?dry_run=true", body)
	require.Len(t, got.Jobs, 1)
	require.Equal(t, 2, got.Jobs[0].Position)
	require.NotNil(t, got.Jobs[0].PredictedStart, got.Jobs[0].Unpredicted)
	require.NotEmpty(t, got.Jobs[0].PredictedStart.Basis)
	later := ask[contract.JobsSubmitted](f.world, "root", http.MethodPost, "/v1/jobs?dry_run=true", `{"pool":"`+f.pool+
		`","command":["true"],"dependencies":[{"job_id":"`+first.ID+`"}],"array":{"last":2}}`)
	require.Len(t, later.Jobs, 3)
	require.Equal(t, "dependency", later.Jobs[2].Reason)
	require.Nil(t, later.Jobs[2].PredictedStart)
	require.NotEmpty(t, later.Jobs[2].Unpredicted)
	require.Equal(t, 1, f.countJobs("all=true").Pending)
	require.Nil(t, f.submit("root", body)[0].PredictedStart, "what is submitted is told without a look at the queue")
}
