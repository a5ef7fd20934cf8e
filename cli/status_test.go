package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An operator sees that jobs of other organizations wait, of which a member of one is told nothing.
func TestStatusTellsOperatorsOfOthersWhoWait(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	operator, member := w.env["FOREWARM_API_KEY"], w.createMember("ann")
	require.Contains(t, w.mustRun("status"), "\nNobody waits.")

	w.mustRun("orgs", "create", "beta", "--max-gpus", "8")
	w.env["FOREWARM_API_KEY"] = w.mustRun("key", "create", "ci", "--org", "beta", "--role", "member", "--jq", ".secret")
	w.mustRun("run", "-d", "--pool", "lab", "--gpus", "4", "--", "true")
	require.Contains(t, w.mustRun("status"), "\nNobody waits but jobs.")
	w.env["FOREWARM_API_KEY"] = operator
	require.Contains(t, w.mustRun("status"), "Nobody of acme waits. 1 job of another organization does.")
	require.Equal(t, "1", w.mustRun("status", "--jq", ".others_pending"))

	w.mustRun("run", "-d", "--pool", "lab", "--gpus", "4", "--", "true")
	require.Contains(t, w.mustRun("status"), "Nobody waits but jobs: 1 of your organization, 1 of others.")
	w.env["FOREWARM_API_KEY"] = member
	require.Contains(t, w.mustRun("status"), "\nNobody waits but jobs.")
}
