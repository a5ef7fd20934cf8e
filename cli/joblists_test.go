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
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// What a list shows of jobs can be asked for.
func TestJobsAreFoundByWhatIsShown(t *testing.T) {
	t.Parallel()
	stops := newJob(contract.JobRunning, 1)
	stops.Ending = &contract.JobEnding{Then: "cancelled"}
	w, s := newJobServer(t, stops)
	require.Contains(t, w.mustRun("jobs", "list", "--state", "ending,failed"), "ending")
	require.Contains(t, s.asked[len(s.asked)-1], "state=failed%2Cscheduled%2Crunning")
	w.mustRun("jobs", "list", "--name", "arr[2]", "--since", "7d")
	require.Contains(t, s.asked[len(s.asked)-1], "index=2")
	require.Contains(t, s.asked[len(s.asked)-1], "name=arr&")
	require.Contains(t, s.asked[len(s.asked)-1], "since=2026-")

	for _, one := range []string{"arr_06h2886k59[2]", "arr_06h2886k59_2"} {
		s.asked = nil
		w.mustRun("jobs", "show", one)
		require.Contains(t, s.asked[0], "array=arr_06h2886k59&index=2", one)
	}
	s.asked = nil
	w.mustRun("jobs", "show", "trial_2")
	require.Contains(t, s.asked[0], "name=trial_2", "a name may end like that")

	w, _ = newJobServer(t, newJob(contract.JobRunning, 1))
	require.NotContains(t, w.mustRun("jobs", "list", "--state", "ending"), "job_1", "it is not")
}

// Why a job failed is beside its state, and how it ended is shown with it.
func TestHowAJobEndedIsShown(t *testing.T) {
	t.Parallel()
	over := endedWith(1, 143)
	over.Reason, over.Signal, over.Detail = contract.JobTimeLimit, "TERM", "its time of 60 s was over"
	w, _ := newJobServer(t, over)
	require.Contains(t, w.mustRun("jobs", "list", "--all"), "failed (time_limit)")
	shown := strings.Join(strings.Fields(w.mustRun("jobs", "show", "job_1")), " ")
	require.Contains(t, shown, "EXIT CODE 143 (TERM)")
}

// On the real server: jobs that somebody holds are in no queue, which says so, and times of submission narrow a list.
func TestTheQueueTellsOfHeldJobs(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	for range 2 {
		w.mustRun("run", "-d", "--hold", "--pool", "lab", "--name", "twice", "--", "true")
	}
	_, errs, code := w.runCommand("queue", "--pool", "lab")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "2 jobs are held: forewarm jobs list --state held --pool lab\n")
	_, errs, code = w.runCommand("queue", "-o", "json")
	require.Zero(t, code, errs)
	require.NotContains(t, errs, "held")

	_, errs, code = w.runCommand("run", "-n", "--pool", "lab", "--after", "twice", "--", "true")
	require.Equal(t, exit.Conflict, code, errs)
	require.Contains(t, errs, `2 jobs are called "twice"`)
	_, errs, code = w.runCommand("run", "-n", "--pool", "lab", "--max-runtime", "2h", "--checkpoint", "B:USR1@1m",
		"--", "true")
	require.Zero(t, code, errs)
	require.Contains(t, errs, "Max runtime 2h, grace 30s, checkpoint USR1 to its first process, 1m before the end\n"+
		"Retries     0 after a failure, 3 after a loss\nNot before  -\n")
}

// exec takes a job for its allocation, and says so of one that has none.
func TestExecByTheIDOfAJob(t *testing.T) {
	t.Parallel()
	w, _ := newJobServer(t, newJob(contract.JobPending, 0))
	_, errs, code := w.runCommand("exec", "job_1", "--", "true")
	require.Equal(t, exit.Conflict, code, errs)
	require.Contains(t, errs, "job_1 is pending: it has no GPUs now")
	runs := newJob(contract.JobRunning, 1)
	runs.AllocationID = "alc_1"
	w, s := newJobServer(t, runs)
	_, _, _ = w.runCommand("exec", "job_1", "-n", "--", "true")
	require.Contains(t, s.asked, "GET /v1/allocations/alc_1")
}

// Nothing in a queue starts while no worker is there, however little stands before it: the queue says so.
func TestTheQueueTellsThatNoWorkerIsThere(t *testing.T) {
	t.Parallel()
	since := monday.Add(-time.Hour)
	pool := contract.Pool{ID: "pol_1", Name: "lab", NoWorkerSince: since}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = contract.JobCounts{}
		switch r.URL.Path {
		case "/v1/pools":
			answer = contract.List[contract.Pool]{Items: []contract.Pool{pool}}
		case "/v1/pools/lab":
			answer = pool
		case "/v1/queue":
			answer = contract.List[contract.Job]{Items: []contract.Job{newJob(contract.JobPending, 0)}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer listening.Close()
	w := newTown(t)
	w.env["FOREWARM_API"] = listening.URL
	said := "no worker has been seen since " + format.Time(since) + "; nothing is started before one is there"
	for _, args := range [][]string{{"queue"}, {"queue", "--pool", "lab"}} {
		out, errs, code := w.runCommand(args...)
		require.Zero(t, code, errs)
		require.Contains(t, out, "job_1")
		require.Contains(t, errs, said)
	}
	_, errs, code := w.runCommand("queue", "-o", "json")
	require.Zero(t, code, errs)
	require.NotContains(t, errs, said)
	pool.NoWorkerSince = time.Time{}
	_, errs, _ = w.runCommand("queue")
	require.NotContains(t, errs, "no worker")
}

// Somebody's jobs are found by their address, by everybody in their organization.
func TestJobsOfAPersonAreListed(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	submit := func(name string) { w.mustRun("run", "-d", "--hold", "--pool", "lab", "--name", name, "--", "true") }
	submit("nobodys")
	operator := w.env["FOREWARM_API_KEY"]
	w.env["FOREWARM_API_KEY"] = w.createMember("ada")
	submit("hers")
	mine := w.mustRun("jobs", "list", "--user", "me")
	w.env["FOREWARM_API_KEY"] = operator
	require.Equal(t, mine, w.mustRun("jobs", "list", "--user", "ada@example.com"))
	require.Contains(t, mine, "hers")
	require.NotContains(t, mine, "nobodys")
	_, errs, code := w.runCommand("jobs", "list", "--user", "eve@example.com")
	require.Equal(t, exit.NotFound, code)
	require.Contains(t, errs, `no user "eve@example.com"`)
}

// A date is the beginning of that day, here.
func TestListsSinceADay(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, newJob(contract.JobPending, 0))
	for _, line := range []string{"jobs list --since 2026-03-02 --until 2026-03-03",
		"jobs logs job_1 --since 2026-03-02"} {
		_, errs, code := w.runCommand(strings.Fields(line)...)
		require.Zero(t, code, errs)
	}
	require.Regexp(t, `^GET /v1/jobs\?.*since=2026-03-01T23%3A00%3A00Z&until=2026-03-02T23%3A00%3A00Z`, s.asked[0])
}
