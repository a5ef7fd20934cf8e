//go:build slurm

package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// On a real Slurm cluster a placeholder brings the node's daemon: who holds its GPUs runs commands there, as the
// placeholders' user, and the next one finds nothing of the one before.
func TestRealSlurmNodesCanBeEntered(t *testing.T) {
	h := newHome(t)
	p := h.startOnSlurm(t)
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
	node := regexp.MustCompile(`nod_\w+`).FindString(h.say(t, 0, "nodes", "list"))
	h.say(t, 0, "nodes", "drain", node)
	folder, _, _ := strings.Cut(lines[1], "/state-holds/") // the daemon's, which goes with the placeholder
	require.Contains(t, filepath.Base(folder), "forewarm-node-")
	require.Eventually(t, func() bool { _, err := os.Stat(folder); return os.IsNotExist(err) }, time.Minute, time.Second)
	require.Zero(t, p.stop(t, ending), p.errors.String())
}
