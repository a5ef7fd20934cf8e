package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// startWithRack starts up with a pool "rack" of four machines, each a real daemon with two GPUs.
func (h home) startWithRack(t *testing.T) *process {
	t.Helper()
	path := withNodeProgram(t)
	program, _, _ := strings.Cut(strings.TrimPrefix(path, "PATH="), ":")
	script, err := filepath.Abs("testdata/rack.py")
	require.NoError(t, err)
	state, err := os.MkdirTemp("/var/tmp", "forewarm-gang-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(state, 0o711)) //nolint:gosec // whoever runs jobs passes through it
	h.writeConfig(t, fmt.Sprintf(`provisioners:
  - kind: exec
    config:
      name: rack
      command: [python3, %s, %s/forewarm-node, %s]
      daemon: true
      simulated: true
pools:
  - {name: rack, provisioner: rack, region: here, instance_type: twin, max_nodes: 4}
`, script, program, state))
	t.Cleanup(func() {
		endDaemons(t, state)
		require.NoError(t, os.RemoveAll(state))
	})
	p := h.start(t, nil, "up", "--config", h.configFile(), "--data-dir", h.dataDir(), "--listen", "127.0.0.1:0")
	p.awaitAddress(t)
	h.awaitKey(t, p)
	return p
}

// endDaemons ends the daemons of machines below a folder.
func endDaemons(t *testing.T, state string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "machines", "*", "pid"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		pid, err := strconv.Atoi(string(text))
		require.NoError(t, err)
		_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended
		eventually(t, patience, func() string {
			if runs(string(text)) {
				return "daemon " + string(text) + " does not end"
			}
			return ""
		})
	}
}

// A gang runs on real daemons, one for each node: its processes find their ranks as torchrun gives them, and meet at
// the address and port that they are told. When one of its nodes fails, the others' work ends with it.
func TestAGangMeetsOnSeveralDaemons(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.startWithRack(t)
	run := func(want, nodes, gpus int, args ...string) string {
		return h.say(t, want, append([]string{"run", "--pool", "rack", "--nodes", strconv.Itoa(nodes), "--gpus-per-node",
			strconv.Itoa(gpus)}, args...)...)
	}
	for _, shape := range []struct{ nodes, gpus int }{{4, 1}, {2, 2}, {4, 2}} {
		got := run(0, shape.nodes, shape.gpus, "--input", "testdata/meet.py", "--", "python3", "-")
		world := shape.nodes * shape.gpus
		for rank := range world {
			require.Contains(t, got, fmt.Sprintf("RANK=%d LOCAL_RANK=%d WORLD_SIZE=%d sum and GPUs: %d %d", rank,
				rank%shape.gpus, world, world*(world-1)/2, world))
		}
		require.Equal(t, world, strings.Count(got, "\n")+1, got)
	}

	got := run(5, 4, 2, "--grace", "2s", "--", "sh", "-c",
		`echo "pid $$"; [ "$NODE_RANK" != 2 ] || exit 5; exec sleep 1000`)
	for line := range strings.Lines(got) {
		_, pid, _ := strings.Cut(strings.TrimSpace(line), "pid ")
		eventually(t, patience, func() string {
			if runs(pid) {
				return "process " + pid + " outlives its gang"
			}
			return ""
		})
	}
	require.Zero(t, p.stop(t, ending), p.errors.String())
}
