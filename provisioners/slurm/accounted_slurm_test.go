//go:build slurm

package slurm_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

// submitShort submits a plain job that is over at once.
func (r *realElastic) submitShort(t *testing.T, args ...string) string {
	t.Helper()
	line := append([]string{"runuser", "-u", plainUser, "--", "sbatch", "--parsable", "--chdir=/", "--output=/dev/null",
		"--partition=elastic", "--gres=gpu:a100:2"}, args...)
	return strings.TrimSpace(runAsRoot(t, append(line, "--wrap=true")...))
}

// awaitForgotten waits until slurmctld knows the job no longer.
func awaitForgotten(t *testing.T, job string) {
	t.Helper()
	waitUntil(t, time.Minute, "slurmctld does not forget job "+job, func() bool {
		return exec.CommandContext(t.Context(), "scontrol", "show", "job", job).Run() != nil
	})
}

// catchUp observes until a look is complete, as the control plane does after an outage.
func (r *realElastic) catchUp(t *testing.T, since provisioners.Mark) ([]provisioners.Work, provisioners.Mark) {
	t.Helper()
	var work []provisioners.Work
	waitUntil(t, time.Minute, "no look is complete", func() bool {
		seen, err := r.Observe(t.Context(), since)
		require.NoError(t, err)
		work, since = append(work, seen.Work...), seen.Mark
		return seen.Complete
	})
	return work, since
}

// TestAccountedBySlurmdbd: jobs that slurmctld has forgotten before anybody looked are read from
// slurmdbd, whatever their users called them.
func TestAccountedBySlurmdbd(t *testing.T) {
	r := newElastic(t, func(c *slurm.Config) { c.Accounting = true })
	_, mark := r.catchUp(t, "")
	named := r.submitShort(t, "--job-name=a\nb|c\x1fd\x1fe", "--comment=\x1f\n|")
	array := r.submitShort(t, "--array=0-2")
	awaitForgotten(t, named)
	awaitForgotten(t, array)

	work, mark := r.catchUp(t, mark)
	began := map[string]int{}
	for _, w := range work {
		require.Equal(t, "lab", w.Account, w.ID)
		require.Equal(t, plainUser, w.User, w.ID)
		require.Equal(t, 2, w.GPUs, w.ID)
		require.Equal(t, "four", w.Type, w.ID)
		require.False(t, w.EndedAt.IsZero(), "%s still runs", w.ID)
		wait, started := w.Wait()
		require.True(t, started, w.ID)
		require.Less(t, wait, 2*time.Minute, w.ID)
		require.Len(t, w.Nodes, 1, w.ID)
		began[w.ID]++
	}
	require.Len(t, began, 4, "%+v", work)

	work, _ = r.catchUp(t, mark)
	require.LessOrEqual(t, len(work), len(began), "the past is read again and again")
}
