//go:build slurm

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// On a real Slurm cluster a placeholder brings the node's daemon: who holds its GPUs runs commands there, as the
// placeholders' user, and the next one finds nothing of the one before.
func TestRealSlurmNodesCanBeEntered(t *testing.T) {
	dir := os.Getenv("FOREWARM_TEST_SLURM")
	require.NotEmpty(t, dir, "run it with scripts/with-slurm")
	program := filepath.Join(dir, "forewarm-node") // the placeholders' user can get there
	build := exec.Command("go", "build", "-p", "2", "-tags", "nomsgpack", "-trimpath", "-o", program, "../forewarm-node")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	h := newHome(t)
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
        - {type: a100-2, partition: n5, gres: "gpu:a100", model: a100-80g, gpus: 2, price_per_hour: 10}
pools:
  - {name: lab, provisioner: cluster, region: here, instance_type: a100-2, max_nodes: 1}
`, dir, program))
	require.NoError(t, os.Chmod(dir, 0o777)) // placeholders write there, as their user
	p := h.start(t, nil, "up", "--config", h.configFile(), "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
	p.awaitAddress(t)
	h.awaitKey(t, p)
	enter := func(name, script string) string {
		return h.say(t, 0, "exec", name, "--", "sh", "-c", script)
	}
	h.say(t, 0, "allocate", "--pool", "lab", "--gpus", "2", "--for", "30m", "--name", "first", "--wait")
	got := enter("first", `echo "$(id -un) $SLURM_JOB_ID $FOREWARM_ISOLATION $CUDA_VISIBLE_DEVICES"; pwd; touch left
nohup sleep 1000 >/dev/null 2>&1 & echo $!`)
	require.Regexp(t, `^nobody \d* ?environment GPU-n5-0000-0000-\d,GPU-n5-0000-0000-\d\n/\S+\n\d+$`, got)
	lines := strings.Split(got, "\n")
	require.FileExists(t, filepath.Join(lines[1], "left"))
	h.say(t, 0, "release", "first")
	h.say(t, 0, "allocate", "--pool", "lab", "--gpus", "2", "--for", "30m", "--name", "second", "--wait")
	require.NoFileExists(t, filepath.Join(lines[1], "left"))
	require.False(t, runs(lines[2]))
	require.Equal(t, "", enter("second", "ls -A"))
	require.Contains(t, h.say(t, 0, "events", "--last", "0"), "allocation.cleaned")
	h.say(t, 0, "release", "second")
	require.Zero(t, p.stop(t, ending), p.errors.String())
}
