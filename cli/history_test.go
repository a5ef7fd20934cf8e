package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
