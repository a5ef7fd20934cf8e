package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An array of a thousand jobs runs to its end, through the server, SQLite and a real daemon: each of its jobs once, and
// with its own index.
func TestAThousandJobsOfAnArray(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.writeConfig(t, "provisioners: [{kind: local, config: {name: here, simulate: 4, shared_user: true, hold_dir: "+
		t.TempDir()+"}}]\n"+
		"pools: [{name: local, provisioner: here, region: local, instance_type: local, max_nodes: 1}]\n")
	p := h.start(t, []string{withNodeProgram(t)}, "up", "--config", h.configFile(), "--data-dir", h.dataDir(), "--listen",
		"127.0.0.1:0")
	p.awaitAddress(t)
	h.awaitKey(t, p)
	out := t.TempDir()                                     // as storage that nodes share: jobs have users of their own
	require.NoError(t, os.Chmod(filepath.Dir(out), 0o755)) //nolint:gosec // they pass through it
	require.NoError(t, os.Chmod(out, 0o777))               //nolint:gosec // and write there
	id := h.say(t, 0, "sbatch", "--parsable", "-p", "local", "-a", "0-999%4", "--wrap",
		`echo "$FOREWARM_JOB_ATTEMPT" >>`+out+`/$SLURM_ARRAY_TASK_ID`)
	h.start(t, nil, "wait", id, "-q").wait(t, 5*patience) // a thousand take longer than one
	require.Equal(t, "[]", h.say(t, 0, "jobs", "list", "--array", id, "--jq",
		`map(select(.state != "completed")) | map(del(.command))`))
	require.Equal(t, "1000", h.say(t, 0, "jobs", "list", "--array", id, "--jq",
		`map(select(.state == "completed")) | length`))
	for i := range 1000 {
		text, err := os.ReadFile(filepath.Join(out, fmt.Sprint(i)))
		require.NoError(t, err)
		require.Equal(t, "1\n", string(text), i)
	}
	require.Zero(t, p.stop(t, ending), p.errors.String())
}
