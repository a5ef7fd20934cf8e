//go:build slurm

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// On two nodes of a real Slurm cluster, each held by a placeholder, scripts of Slurm run as they are: a gang whose
// tasks span both, an array to its end, and a job that leaves for another one, comes back, and finishes.
func TestRealSlurmRunsBatches(t *testing.T) {
	h := newHome(t)
	p := h.startOnPartition(t, "pair", 4, 2)
	h.runGangOfSlurm(t)
	h.runArrayOfSlurm(t)
	h.runVictimOfSlurm(t)
	eventually(t, patience, func() string { // or they would be in the way of those of the next test
		if left := slurmJobs(t); len(left) > 0 {
			return fmt.Sprintf("the pool keeps the placeholders %v", left)
		}
		return ""
	})
	require.Zero(t, p.stop(t, ending), p.errors.String())
}

func script(t *testing.T, name string, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// runGangOfSlurm runs a task on each of eight GPUs of two nodes.
func (h home) runGangOfSlurm(t *testing.T) {
	t.Helper()
	path := script(t, "gang.sh", "#!/bin/bash", "#SBATCH -p lab -N 2 --ntasks-per-node=4 --gpus-per-task=1 -t 30",
		`first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)`,
		`export MASTER=$first`,
		`srun sh -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS on $CUDA_VISIBLE_DEVICES for $MASTER"'`)
	out := filepath.Join(filepath.Dir(path), "%x.%n")
	require.Contains(t, h.say(t, 0, "sbatch", "-W", "-o", out, path), "Submitted batch job job_")
	placeholders := slurmJobs(t)
	require.Len(t, placeholders, 2, "two placeholders run, and the job's tasks are no jobs of Slurm")
	gpus, masters := map[string]bool{}, map[string]bool{}
	for rank := range 2 {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(path), fmt.Sprintf("gang.sh.%d", rank)))
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		require.Len(t, lines, 4, string(text))
		slices.Sort(lines)
		for i, line := range lines {
			m := regexp.MustCompile(`^task (\d) of 8 on (GPU-n[34]-0000-0000-\d) for (\S+)$`).FindStringSubmatch(line)
			require.NotNil(t, m, line)
			require.Equal(t, fmt.Sprint(4*rank+i), m[1])
			gpus[m[2]], masters[m[3]] = true, true
		}
	}
	require.Len(t, gpus, 8, "each task has a GPU of its own")
	require.Len(t, masters, 1)
}

// runArrayOfSlurm runs an array of which three run at a time.
func (h home) runArrayOfSlurm(t *testing.T) {
	t.Helper()
	path := script(t, "array.sh", "#SBATCH --partition=lab --gres=gpu:1 --array=1-23:2%3", "#SBATCH --time=0-0:30",
		`echo "$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX"`,
		`[ $SLURM_ARRAY_TASK_ID != 5 ] || exit 5`)
	id := strings.TrimPrefix(h.say(t, 5, "sbatch", "--wait", "-o", filepath.Join(filepath.Dir(path), "%a"), path),
		"Submitted batch job ")
	for i := 1; i <= 23; i += 2 {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(path), fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%d of 12, 1 to 23\n", i), string(text))
	}
	states := strings.Split(h.say(t, 0, "jobs", "list", "--array", id, "--jq", ".[].state"), "\n")
	slices.Sort(states)
	require.Equal(t, append(slices.Repeat([]string{"completed"}, 11), "failed"), states)
}

// runVictimOfSlurm has a job that holds all GPUs leave for one that goes before it.
func (h home) runVictimOfSlurm(t *testing.T) {
	t.Helper()
	dir := filepath.Join(os.Getenv("FOREWARM_TEST_SLURM"), "victim") // where jobs of the placeholders' user may write
	require.NoError(t, os.Mkdir(dir, 0o777))
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // as storage that nodes share
	path := script(t, "victim.sh", "#SBATCH -p lab -N 2 --gpus-per-node=4", "#SBATCH --signal=B:USR1@20 -D "+dir,
		"#FW --preemptible --priority low --grace 5s",
		"trap 'echo saved >>saved.$SLURM_NODEID; exit 143' USR1",
		"[ -e saved.$SLURM_NODEID ] && { echo back after $SLURM_RESTART_COUNT; exit 0; }",
		"touch began.$SLURM_NODEID", "sleep 1000 & wait")
	id := h.say(t, 0, "sbatch", "--parsable", path)
	for _, name := range []string{"began.0", "began.1"} {
		eventually(t, patience, func() string {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	first := script(t, "first.sh", "#SBATCH -p lab --exclusive -N 1", "#FW --priority high",
		"echo $SLURM_GPUS_ON_NODE GPUs")
	out := filepath.Join(filepath.Dir(first), "out")
	h.say(t, 0, "sbatch", "-W", "-o", out, first)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "4 GPUs\n", string(text))
	h.say(t, 0, "wait", id)
	require.Equal(t, "completed 2 1", h.say(t, 0, "jobs", "show", id, "--jq",
		`"\(.state) \(.attempt) \(.preemptions)"`))
	require.Contains(t, h.say(t, 0, "jobs", "logs", id), "back after 1")
}
