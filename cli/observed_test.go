package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

// createObservedPool makes a pool in which a cluster's own scheduler places the work.
func (w *town) createObservedPool(name string) (stdout, stderr string, code int) {
	w.t.Helper()
	return w.runCommand("pools", "create", name, "--provisioner", "cluster", "--model", "a100",
		"--instance-type", "gpu-4",
		"--gpus-per-node", "4", "--memory", "80", "--max-nodes", "2", "--price", "8.40", "--use", "observed")
}

// observe reports jobs that begin now in the observed pool.
func (w *town) observe(jobs ...string) {
	w.t.Helper()
	ctx, now := w.t.Context(), w.clock.Now()
	seen := ledger.Observation{Provisioner: "cluster", At: now, Mark: now.String(), Complete: true}
	for _, id := range jobs {
		seen.Work = append(seen.Work, ledger.ObservedWork{Type: "gpu-4", StartedAt: now,
			Nodes: []ledger.WorkNode{{GPUs: 4}}, Work: allocation.Work{ID: id, QueuedAt: now.Add(-40 * time.Second),
				WorkOwner: capacity.WorkOwner{User: "ann"}}})
	}
	require.NoError(w.t, w.ledger.EnsureObserving(ctx, "cluster"))
	due, err := w.ledger.Dispatch(ctx, 100, 0)
	require.NoError(w.t, err)
	for _, task := range due {
		if task.Kind == ledger.TaskObserve {
			task, err = w.ledger.ClaimTask(ctx, task.ID, task.Attempt, time.Minute)
			require.NoError(w.t, err)
			_, err = w.ledger.ReportObserved(ctx, ledger.Guard{TaskID: task.ID, Fence: task.Fence}, seen)
			require.NoError(w.t, err)
			return
		}
	}
	require.Fail(w.t, "the cluster is not looked at")
}

// Commands name the way that an observed pool has, and its jobs as their users do.
func TestAnObservedPoolAtTheShell(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	_, errs, code := w.createObservedPool("obs")
	require.Equal(t, exit.OK, code, errs)
	_, errs, code = w.runCommand("reserve", "--gpus", "4", "--pool", "obs", "--at", "in 1h", "--for", "1h")
	require.Equal(t, exit.OK, code)
	require.Contains(t, errs, "Next:  submit the job to the cluster as always")
	require.NotContains(t, errs, "reservations claim")

	_, errs, code = w.createObservedPool("again")
	require.NotEqual(t, exit.OK, code)
	require.Contains(t, errs, "obs has the gpu-4 of cluster already")

	w.observe()
	w.clock.Advance(time.Minute)
	w.observe("17@1772438400")
	w.clock.Advance(time.Second)
	list := w.mustRun("allocations", "list")
	require.Contains(t, list, "17 ann")
	require.NotContains(t, list, "@")
	require.Contains(t, w.mustRun("allocations", "list", "-o", "json"), `"id": "17@1772438400"`)
	told := w.mustRun("explain", "obs")
	require.Contains(t, told, "0 of 1 start in 7d did not wait for a boot")
	require.Regexp(t, `Waited +for boot +1 start, 40s on average`, told)
	require.Contains(t, w.mustRun("report"), "boot 1 start, 40s on average")
	require.NotContains(t, strings.ToLower(w.mustRun("events")), "17@")
}
