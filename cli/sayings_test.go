package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/contract"
)

// A node that was just quarantined is shown with its daemon, which goes on.
func TestAQuarantinedNodeIsShownWithItsDaemon(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.mustRun("allocate", "--gpus", "4", "--pool", "lab", "--wait")
	w.lookAtGPUs("30s 0")
	id := w.mustRun("nodes", "list", "--jq", ".[0].id")
	require.Regexp(t, `DAEMON +online\n`, w.mustRun("nodes", "show", id))
	require.Regexp(t, `DAEMON +online\n`, w.mustRun("nodes", "quarantine", id, "--yes"))
	require.Regexp(t, `DAEMON +online\n`, w.mustRun("nodes", "resume", id))
}

// Predictions of jobs are something to show, also where no forecast is.
func TestCalibrationOfJobsAlone(t *testing.T) {
	t.Parallel()
	report := contract.CalibrationReport{Sources: []contract.SourceCalibration{}, Jobs: []contract.JobCalibration{}}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(report)
	}))
	defer listening.Close()
	w := newTown(t)
	w.env["FOREWARM_API"] = listening.URL
	_, errs, code := w.runCommand("report", "calibration")
	require.Zero(t, code, errs)
	require.Equal(t, "Nothing to show.\n", errs)
	report.Jobs = []contract.JobCalibration{{PoolName: "lab", Runtimes: &contract.TimeCalibration{}}}
	out, errs, code := w.runCommand("report", "calibration")
	require.Zero(t, code, errs)
	require.Empty(t, errs)
	require.Regexp(t, `^POOL +PREDICTED .*\nlab +runtime `, out)
}

// An operator sees the people of one organization.
func TestPeopleOfAnOrganization(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("orgs", "create", "beta", "--max-gpus", "4", "--speculation-per-day", "10")
	w.mustRun("users", "create", "ada@example.com", "--role", "member")
	w.mustRun("users", "create", "bob@example.com", "--role", "member", "--org", "beta")
	require.Equal(t, "bob@example.com", w.mustRun("users", "list", "--org", "beta", "--jq", ".[].email"))
	_, errs, code := w.runCommand("users", "list", "--org", "nosuch")
	require.Equal(t, exit.NotFound, code, errs)
}

// After a job that ran and failed, what it wrote says why; of one that never ran there is nothing.
func TestAFailureNamesTheLogs(t *testing.T) {
	t.Parallel()
	never := newJob(contract.JobFailed, 0)
	never.Reason, never.EndedAt = "dependency", monday.Add(time.Minute)
	for _, line := range [][]string{{"run", "--", "true"}, {"wait", "job_1"}, {"sbatch", "-W", "-o", "/dev/null", "--wrap",
		"true"}} {
		w, _ := newJobServer(t, endedWith(1, 3))
		_, errs, _ := w.runCommand(line...)
		require.Contains(t, errs, "Next:  forewarm jobs logs job_1\n", line)
		w, _ = newJobServer(t, never)
		_, errs, _ = w.runCommand(line...)
		require.NotContains(t, errs, "jobs logs", line)
		require.Contains(t, errs, "forewarm jobs show job_1\n", line)
	}
}
