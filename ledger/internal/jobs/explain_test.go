package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// Who reads an explanation is not sent to it.
func TestAnExplanationDoesNotNameItself(t *testing.T) {
	t.Parallel()
	e := ledger.Explanation{Summary: "It waits."}
	explainStart(&e, ledger.QueuedJob{Job: job.Job{ID: "job_1"}, Unpredicted: "no end lets it" + seeExplanation("job_1")})
	require.Equal(t, "It waits. When it starts cannot be said: no end lets it.", e.Summary)
}
