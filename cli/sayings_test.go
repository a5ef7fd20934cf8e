package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
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

// What the page about jobs says in the place of sreport adds up the hours of each person and month.
func TestHoursByPersonAndMonth(t *testing.T) {
	t.Parallel()
	of := func(email string, at time.Time, seconds int64) contract.Job {
		x := endedWith(1, 0)
		x.UserEmail, x.SubmittedAt, x.GPUSeconds = email, at, seconds
		return x
	}
	const ada = "ada@example.com"
	all := contract.List[contract.Job]{Items: []contract.Job{of(ada, monday, 3600), of("", monday, 1800),
		of(ada, monday.AddDate(0, 1, 0), 7200), of(ada, monday, 5400)}}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(all)
	}))
	defer listening.Close()
	w := newTown(t)
	w.env["FOREWARM_API"] = listening.URL
	tried := 0
	for _, block := range usageBlocks(t, "jobs.md", "Coming from sbatch") {
		for _, words := range typed(t, block) {
			if words[len(words)-2] != "--jq" {
				continue
			}
			tried++
			require.Equal(t, "nobody 2026-03 0.5\nada@example.com 2026-03 2.5\nada@example.com 2026-04 2", w.mustRun(words...))
		}
	}
	require.Equal(t, 1, tried)
}

// Jobs of one name are cancelled by the ids that a list of that name has, as the page about jobs says.
func TestJobsOfOneNameAreCancelled(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	for range 2 {
		w.mustRun("run", "-d", "--hold", "--pool", "lab", "--name", "twice", "--", "true")
	}
	_, errs, code := w.runCommand("jobs", "cancel", "twice")
	require.Equal(t, exit.Conflict, code, errs)
	w.mustRun(append([]string{"jobs", "cancel"}, strings.Fields(w.mustRun("jobs", "list", "--name", "twice", "-o",
		"name"))...)...)
	require.Equal(t, "2", w.mustRun("jobs", "list", "--state", "cancelled", "--jq", "length"))
}
