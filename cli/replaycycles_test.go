package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// What a scheduler would decide is saved, and decided again from the file; whatever is wrong with a file is told with
// its name.
func TestReplayOfCycles(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	long := w.mustRun("run", "-d", "--pool", "lab", "--gpus", "1", "--max-runtime", "9h", "-o", "name", "--", "true")
	short := w.mustRun("run", "-d", "--pool", "lab", "--gpus", "1", "--max-runtime", "5m", "-o", "name", "--", "true")
	now := w.mustRun("replay", "--pool", "lab")
	require.Contains(t, now, "identical")
	require.Less(t, strings.Index(now, short), strings.Index(now, long), "what asks for less is next")

	dir := t.TempDir()
	path := filepath.Join(dir, "now.json")
	write := func(text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	saved := w.mustRun("api", "GET", "/v1/pools/lab/cycle")
	write(saved)
	require.Contains(t, w.mustRun("replay", path, "--job", long), "identical")
	require.Contains(t, w.mustRun("replay", path, "-o", "json", "--jq", ".identical"), "true")
	require.Contains(t, w.mustRun("replay", path, "--order", "arrival"), "arrival")
	newer := strings.NewReplacer(`"Version":1`, `"Version":9`, `"Version": 1`, `"Version":9`).Replace(saved)
	for name, c := range map[string]struct {
		text, says string
		args       []string
		code       int
	}{
		"tampered":  {strings.Replace(saved, `"balanced"`, `"arrival"`, 1), "another decision", nil, 1},
		"newer":     {newer, "newer", nil, exit.Failed},
		"cut":       {saved[:len(saved)/2], path, nil, exit.Failed},
		"nobody":    {saved, "job_none", []string{"--job", "job_none"}, exit.NotFound},
		"bad order": {saved, "none of", []string{"--order", "chaos"}, exit.Usage},
		"negative":  {saved, "negative", []string{"--promises", "-1"}, exit.Usage},
		"both":      {saved, "--pool", []string{"--pool", "lab"}, exit.Usage},
	} {
		write(c.text)
		out, errs, code := w.runCommand(append([]string{"replay", path}, c.args...)...)
		require.Equal(t, c.code, code, "%s: %s%s", name, out, errs)
		require.Contains(t, errs, c.says, name)
	}
	_, errs, code := w.runCommand("replay", filepath.Join(dir, "missing"))
	require.Equal(t, exit.Failed, code)
	require.Contains(t, errs, "missing")
}
