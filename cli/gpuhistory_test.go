package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// The day of a GPU is a table, with lines above it for a person at a terminal, and says what is missing.
func TestGPUHistory(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("pools", "create", "lab", "--provisioner", "sim", "--model", "a100-80g", "--instance-type", "sim-4xa100",
		"--gpus-per-node", "4", "--memory", "80", "--max-nodes", "1", "--price", "12.80", "--simulated")
	w.mustRun("allocate", "--gpus", "2", "--pool", "lab", "--name", "otter", "--for", "2h", "--wait")
	gpu := w.mustRun("gpus", "list", "--jq", ".[0].uuid")
	out, errs, code := w.runCommand("gpus", "history", gpu)
	require.Equal(t, exit.OK, code, errs)
	require.Empty(t, out)
	require.Contains(t, errs, "Nothing to show.\n")

	w.joinDaemon("simulated")
	start := w.clock.Now().Truncate(5 * time.Minute)
	w.clock.Set(start.Add(11 * time.Minute))
	out, errs, code = w.runCommand("gpus", "history", gpu, "--since", "2h")
	require.Equal(t, exit.OK, code, errs)
	require.Equal(t, "START                  USE  MOST  MEMORY  HOTTEST  POWER\n"+
		start.Format(time.RFC3339)+"  100%  100%   80.0G      79C   700W\n"+
		start.Add(5*time.Minute).Format(time.RFC3339)+"     -     -       -        -      -\n", strings.ReplaceAll(out,
		"701W", "700W"))
	require.Contains(t, errs, "Note      It is not whole: in some of the time since ")
	require.Contains(t, errs, "Note      It is simulated: no figure is real.\n")

	hourly := w.mustRun("gpus", "history", gpu, "--tz", "Europe/Berlin")
	require.Contains(t, hourly, "\n2026-03-02T09:00:00+01:00  100%", "a day has steps of an hour")
	require.Equal(t, "1", w.mustRun("gpus", "history", gpu, "--step", "10m", "--jq", ".items | length"))
	require.Equal(t, 2, strings.Count(w.mustRun("gpus", "history", gpu, "--step", "5m", "-o", "jsonl"), `{"start":"`))
	require.Equal(t, "false", w.mustRun("gpus", "history", gpu, "-o", "json", "--jq", ".complete"))
	w.terminal = true
	require.Regexp(t, `^use      █·  up to 100%\nmemory   █·  up to 80\.0G\nhottest  █·  up to 79C\n`+
		`power    █·  up to 70[01]W\n\nSTART `, w.mustRun("gpus", "history", gpu, "--since", "1h"))
	w.terminal = false

	for _, wrong := range [][]string{{"--since", "25h"}, {"--step", "7m"}, {"--step", "48h"}, {"--tz", "Mars"}} {
		_, errs, code := w.runCommand(append([]string{"gpus", "history", gpu}, wrong...)...)
		require.Equal(t, exit.Usage, code, errs)
		require.Contains(t, errs, wrong[0])
	}
}
