package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/history"
	"github.com/forewarm/forewarm/contract"
)

// An agent learns from what was run, for as long as it was used, and not from what nobody used.
func TestHistoryHasWhatWasUsed(t *testing.T) {
	t.Parallel()
	w := newVillage(t)
	hold := func(name, use, idle string) {
		id := strings.TrimSpace(w.mustRun("allocate", "--pool", "spare", "--gpus", "4", "--for", "3h", "--name", name,
			"--wait", "-o", "name"))
		w.lookAtGPUs(use + " 60")
		w.lookAtGPUs(idle + " 0")
		w.mustRun("release", id)
		w.passTime(time.Hour)
	}
	hold("trained", "30m", "20m")
	hold("forgotten", "0s", "40m")

	all := map[string]history.Run{}
	for _, r := range w.history() {
		all[r.Name] = r
	}
	train := all["trained"]
	require.NotContains(t, all, "forgotten")
	require.Equal(t, []any{"completed", 4, "spare"}, []any{train.Status, train.GPUs, train.Pool})
	require.InDelta(t, (30 * time.Minute).Seconds(), train.Duration, 60)
	_, errs, _ := w.runCommand("history", "-o", "jsonl")
	require.Regexp(t, "left out: [0-9]+ allocations? whose GPUs nobody used", errs)
}

// A job is in it once, without what its attempts held, in the words that other schedulers have.
func TestHistoryHasJobs(t *testing.T) {
	t.Parallel()
	over := endedWith(1, 143)
	over.Reason, over.Name, over.ArrayID, over.UserEmail = contract.JobTimeLimit, "sweep", "arr_1", "ann@example.com"
	over.OrganizationName, over.SubmittedAt = "acme", monday.Add(-time.Minute)
	again := over
	again.State, again.Reason = contract.JobPreempted, ""
	for _, c := range []struct {
		job  contract.Job
		want history.Run
	}{
		{over, history.Run{Status: "timeout", Started: monday.Unix(), Duration: 90}},
		{again, history.Run{Status: "pending"}},
	} {
		w, s := newJobServer(t, c.job)
		c.want.ID, c.want.Group, c.want.User, c.want.Submitted = "job_1", "acme", "ann@example.com", monday.Unix()-60
		c.want.GPUs, c.want.Name, c.want.Comment, c.want.Array, c.want.Pool = 2, "sweep", "job", "arr_1", "lab"
		require.Equal(t, []history.Run{c.want}, w.history())
		require.Contains(t, strings.Join(s.asked, " "), "/v1/allocations?all=true&since=2025-12")
		s.old = true // whoever heard of it yesterday is to hear how it ended
		require.Equal(t, []history.Run{c.want}, w.history())
		require.Equal(t, "GET /v1/jobs/job_1", s.asked[len(s.asked)-1])
	}
}

// servePages serves 250 jobs, a hundred on a page, and no allocation.
func (w *town) servePages() {
	w.t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		page := contract.List[contract.Job]{Items: []contract.Job{}}
		if r.URL.Path == "/v1/jobs" {
			from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
			for i := from; i < min(from+100, 250); i++ {
				x := newJob(contract.JobHeld, 0)
				x.ID, x.SubmittedAt, x.ArrayID = fmt.Sprintf("job_%03d", i), monday, "arr_1"
				page.Items = append(page.Items, x)
			}
			if from+100 < 250 {
				page.NextCursor = strconv.Itoa(from + 100)
			}
		}
		_ = json.NewEncoder(out).Encode(page)
	}))
	w.t.Cleanup(s.Close)
	w.env["FOREWARM_API"] = s.URL
}

// All pages are read; what has no name has a dash; each format has what there is, and says where there is nothing.
func TestHistoryOfMany(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	out, errs, code := w.runCommand("history", "--last", "2h")
	require.Zero(t, code, errs)
	require.Empty(t, out)
	require.Equal(t, "Nothing was run in the last 2h: --last looks further back\n", errs)
	require.Equal(t, "[]", w.mustRun("history", "-o", "json"))
	require.Empty(t, w.mustRun("history", "-o", "jsonl"))

	w.servePages()
	w.terminal = true
	w.env["NO_COLOR"] = "1"
	lines := strings.Split(w.mustRun("history"), "\n")
	require.Len(t, lines, 251)
	require.Regexp(t, `^job_000 +- +- +lab +2 +held +2026-03-02\S+ +-$`, lines[1])
	for _, line := range lines {
		require.LessOrEqual(t, len(line), 80)
		require.NotContains(t, line, "\x1b")
	}
	ids := map[string]bool{}
	for _, r := range w.history() {
		ids[r.ID] = r.Array == "arr_1"
	}
	require.Len(t, ids, 250)
	require.Len(t, strings.Split(w.mustRun("history", "-o", "name"), "\n"), 250)
}

// Any person's key will do for it, as docs/agent.md says, and an agent's own will not.
func TestWhoMayReadHistory(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	w.mustRun("allocate", "--gpus", "1", "--pool", "lab", "--for", "1h", "--wait")
	for _, c := range []struct {
		key  []string
		code int
	}{
		{[]string{"--role", "viewer"}, exit.OK},
		{[]string{"--kind", "agent", "--max-gpus", "1", "--max-per-day", "1", "--max-lead", "1d", "--max-window", "1h"},
			exit.Policy},
	} {
		file := filepath.Join(t.TempDir(), "key")
		w.mustRun(append([]string{"key", "create", "k" + c.key[1], "--out", file}, c.key...)...)
		w.env["FOREWARM_API_KEY_FILE"] = file
		kept := w.env["FOREWARM_API_KEY"]
		delete(w.env, "FOREWARM_API_KEY")
		out, errs, code := w.runCommand("history", "-o", "jsonl")
		require.Equal(t, c.code, code, errs)
		require.Equal(t, c.code == exit.OK, strings.Contains(out, `"job_id"`))
		w.env["FOREWARM_API_KEY"] = kept
		delete(w.env, "FOREWARM_API_KEY_FILE")
	}
}

func (w *town) history() (all []history.Run) {
	w.t.Helper()
	for line := range strings.Lines(w.mustRun("history", "-o", "jsonl")) {
		var r history.Run
		require.NoError(w.t, json.Unmarshal([]byte(line), &r))
		all = append(all, r)
	}
	return all
}
