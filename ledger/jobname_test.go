package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

// A name is of use where a job can be found by it: neither when it is submitted nor later does a job get another.
func TestNamesByWhichNoJobIsFound(t *testing.T) {
	t.Parallel()
	check := func(name string) (submitted, edited error) {
		c := ledger.JobCommand{Job: job.Job{Name: name, Grace: 30e9}}
		c.Job.Command.Arguments = []string{"true"}
		c.Needs.Pool = "lab"
		return c.Check(), ledger.JobEdit{Name: &name}.Check()
	}
	for name, says := range map[string]string{" ": "more than blanks", "\t \n": "more than blanks",
		"job_x": "job_ or arr_",
		"arr_":  "job_ or arr_", "a[1]": "in brackets",
		"[12]": "in brackets"} {
		submitted, edited := check(name)
		var invalid *ledger.InvalidError
		require.ErrorAs(t, submitted, &invalid, name)
		require.Equal(t, "name", invalid.Field)
		require.ErrorContains(t, submitted, says, name)
		require.ErrorContains(t, edited, says, name)
	}
	for _, name := range []string{"", "job", "job-x", "jobs_1", "a[b]", "a[1]b", "train 7", "größe"} {
		submitted, edited := check(name)
		require.NoError(t, submitted, name)
		require.NoError(t, edited, name)
	}
}
