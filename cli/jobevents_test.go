package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The events of one job are those about it alone, also of one of an array, which is named by its index.
func TestEventsOfOneJob(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	one := w.mustRun("run", "-d", "--pool", "lab", "--hold", "--", "true")
	w.mustRun("run", "-d", "--pool", "lab", "--hold", "--name", "sweep", "--array", "0-2", "--", "true")
	w.mustRun("jobs", "cancel", one)
	two := w.mustRun("jobs", "list", "--name", "sweep[1]", "-o", "name")
	const types = "[.[] | .type + \" \" + .subject] | join(\",\")"
	for _, args := range [][]string{{"jobs", "events", one}, {"events", "--subject", one}} {
		require.Equal(t, "job.submitted "+one+",job.cancelled "+one, w.mustRun(append(args, "--jq", types)...))
		require.Equal(t, "job.cancelled "+one, w.mustRun(append(args, "--last", "1", "--jq", types)...))
	}
	require.Equal(t, "job.submitted "+two, w.mustRun("jobs", "events", "sweep[1]", "--jq", types))
	_, errs, code := w.runCommand("jobs", "events", "sweep")
	require.NotZero(t, code)
	require.Contains(t, errs, "sweep[")
}
