//go:build slurm

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// startOnSlurm starts up with a pool "lab" whose one machine is a placeholder on a real Slurm cluster, of two of the
// node's four GPUs. The placeholder brings the node's daemon.
func (h home) startOnSlurm(t *testing.T) *process {
	t.Helper()
	return h.startOnPartition(t, "n5", 2, 1)
}

// startOnPartition is startOnSlurm with placeholders of so many GPUs each.
func (h home) startOnPartition(t *testing.T, partition string, gpus, placeholders int) *process {
	t.Helper()
	dir := os.Getenv("FOREWARM_TEST_SLURM")
	require.NotEmpty(t, dir, "run it with scripts/with-slurm")
	program := filepath.Join(dir, "forewarm-node") // the placeholders' user can get there
	build := exec.Command("go", "build", "-p", "2", "-tags", "nomsgpack", "-trimpath", "-o", program, "../forewarm-node")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	h.writeConfig(t, fmt.Sprintf(`provisioners:
  - kind: slurm
    config:
      name: cluster
      region: here
      command_prefix: [runuser, -u, nobody, --]
      slurm_conf: %[1]s/slurm.conf
      probe: [%[1]s/nvidia-smi]
      output: %[1]s/placeholder-%%j
      check_every: 1s
      daemon: {program: %[2]s, shared_user: true, args: [--simulate, "4", --log-level, debug]}
      offers:
        - {type: a100, partition: "%[3]s", gres: "gpu:a100", model: a100-80g, gpus: %[4]d, price_per_hour: 10}
pools:
  - {name: lab, provisioner: cluster, region: here, instance_type: a100, max_nodes: %[5]d, idle_release: 10s}
scheduling: {preemption: true, min_runtime: 1s}
`, dir, program, partition, gpus, placeholders))
	require.NoError(t, os.Chmod(dir, 0o777)) // placeholders write there, as their user
	p := h.start(t, nil, "up", "--config", h.configFile(), "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
	p.awaitAddress(t)
	h.awaitKey(t, p)
	return p
}

// On a real Slurm cluster a job runs inside a placeholder's allocation: it finds the placeholder's job and GPUs there,
// what it writes and how it ends come back, and a cancel leaves nothing of it. Then the pool gives its node back.
func TestRealSlurmRunsJobs(t *testing.T) {
	h := newHome(t)
	p := h.startOnSlurm(t)
	run := func(want int, script string) string {
		return h.say(t, want, "run", "--pool", "lab", "--gpus", "2", "--", "sh", "-c", script)
	}
	got := run(0, `echo "$(id -un) $SLURM_JOB_ID $FOREWARM_ISOLATION $CUDA_VISIBLE_DEVICES $WORLD_SIZE $MASTER_ADDR"`)
	require.Regexp(t, `^nobody \d* ?environment GPU-n5-0000-0000-\d,GPU-n5-0000-0000-\d 2 127\.0\.0\.1$`, got)
	placeholders := slurmJobs(t)
	require.Len(t, placeholders, 1, "one placeholder runs, and jobs add none of Slurm's")

	require.Equal(t, "out", run(7, "echo out; echo wrong >&2; exit 7"))
	require.Contains(t, h.say(t, 0, "jobs", "list", "--all"), "failed")
	run(127, "exec /there/is/no/such/program")
	require.Equal(t, placeholders, slurmJobs(t), "all jobs were in one placeholder")

	h.cancelOnSlurm(t)
	eventually(t, patience, func() string {
		if left := slurmJobs(t); len(left) > 0 {
			return fmt.Sprintf("the pool keeps the placeholders %v", left)
		}
		return ""
	})
	require.Zero(t, p.stop(t, ending), p.errors.String())
}

// cancelOnSlurm cancels a job that has left a process of its own and does not hear TERM.
func (h home) cancelOnSlurm(t *testing.T) {
	t.Helper()
	id := h.say(t, 0, "run", "-d", "--pool", "lab", "--gpus", "2", "--name", "long", "--grace", "2s", "--", "sh", "-c",
		`trap '' TERM; sleep 1000 & echo "pids $$ $!"; wait; wait; sleep 1000`)
	require.NotEmpty(t, id)
	follow := h.start(t, nil, "jobs", "logs", "-f", "long")
	_, found := follow.awaitLine(t, 0, patience, regexp.MustCompile(`^pids (\d+ \d+)$`))
	pids := strings.Fields(found[1])
	require.True(t, runs(pids[0]))
	require.Contains(t, placeholderOf(t, pids[0]), slurmJobs(t)[0], "it runs below the placeholder's job")
	h.say(t, 0, "jobs", "cancel", "long")
	require.Equal(t, "", h.say(t, 10, "wait", "long"))
	for _, pid := range pids {
		eventually(t, patience, func() string {
			if runs(pid) {
				return "process " + pid + " of the job outlives its cancellation"
			}
			return ""
		})
	}
	follow.wait(t, patience)
	require.Contains(t, h.say(t, 0, "jobs", "show", "long"), "cancelled")
}

// slurmJobs are the ids of the jobs that the cluster has.
func slurmJobs(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("squeue", "--noheader", "--states", "PENDING,RUNNING,COMPLETING", "--format", "%i").Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

var parentProcess = regexp.MustCompile(`(?m)^PPid:\t(\d+)$`)

// placeholderOf names the jobs of Slurm whose steps a process is below, as their supervisors are called.
func placeholderOf(t *testing.T, pid string) (names string) {
	t.Helper()
	for pid != "0" && pid != "1" {
		line, err := os.ReadFile("/proc/" + pid + "/cmdline")
		require.NoError(t, err)
		names += strings.ReplaceAll(string(line), "\x00", " ") + "\n"
		status, err := os.ReadFile("/proc/" + pid + "/status")
		require.NoError(t, err)
		pid = parentProcess.FindStringSubmatch(string(status))[1]
	}
	return names
}
