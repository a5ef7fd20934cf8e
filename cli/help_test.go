package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/ledger"
)

// leafCommands are the commands that do something, by their paths below forewarm.
func leafCommands(root *cobra.Command) map[string]*cobra.Command {
	found := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && !c.HasSubCommands() {
			found[strings.TrimPrefix(c.CommandPath(), "forewarm ")] = c
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return found
}

// A command's help shows its own flags, and none that every command has.
func TestHelpShowsOwnFlags(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	for path := range leafCommands(w.newRoot()) {
		out := w.mustRun(append(strings.Fields(path), "--help")...)
		require.NotContains(t, out, "--no-headers", path)
		require.NotContains(t, out, "--idempotency-key", path)
	}
	require.Contains(t, w.mustRun("allocate", "--help"), "--gpus int")
	require.Contains(t, w.mustRun("allocate", "--help"), "--wait")
	require.NotContains(t, w.mustRun("pools", "list", "--help"), "--wait")
	require.Contains(t, w.mustRun("options"), "--dry-run")
	require.Equal(t, "forewarm 1.2.3", w.mustRun("--version"))
}

// Every exit code that can come is documented, once.
func TestExitCodesAreDocumented(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	text := w.mustRun("help", "exit-codes")
	seen := map[int]bool{}
	for _, e := range exit.Meanings {
		require.False(t, seen[e.Code])
		seen[e.Code] = true
		require.Contains(t, text, e.Text)
	}
	for _, code := range []int{exit.OK, exit.Failed, exit.Usage, exit.Login, exit.NotFound, exit.Conflict, exit.Policy,
		exit.NoCapacity, exit.Timeout,
		exit.WaitFailed, exit.Interrupt, exit.Terminated} {
		require.True(t, seen[code], "%d", code)
	}
}

func TestManualHasEveryCommand(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	dir := filepath.Join(t.TempDir(), "man")
	w.mustRun("man", dir)
	w.mustRun("man", "--markdown", filepath.Join(dir, "cli.md"))
	reference, err := os.ReadFile(filepath.Join(dir, "cli.md"))
	require.NoError(t, err)
	for path, c := range leafCommands(w.newRoot()) {
		page, err := os.ReadFile(filepath.Join(dir, "forewarm-"+strings.ReplaceAll(path, " ", "-")+".1"))
		if c.Name() == "help" {
			continue
		}
		require.NoError(t, err, path)
		require.Contains(t, string(page), `.SH SYNOPSIS`, path)
		if c.GroupID != "" || c.Parent().HasParent() {
			require.Contains(t, string(reference), "### forewarm "+path+"\n", path)
		}
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.createPool()
	require.Equal(t, "lab", w.mustRun("pools", "list", "--jq", ".[].name"))
	require.Equal(t, `["lab",4]`, w.mustRun("pools", "show", "lab", "--jq", "[.name, .gpus_per_node]"))
	require.Equal(t, "1.2.3", w.mustRun("status", "--jq", ".version.version"))
	require.Equal(t, "pool.created", w.mustRun("events", "--last", "1", "-o", "jsonl", "--jq", ".type"))
	require.Equal(t, "lab", w.mustRun("api", "GET", "/v1/pools", "--jq", ".items[0].name"))
	w.env["FOREWARM_OUTPUT"] = "yaml"
	require.Equal(t, "lab", w.mustRun("pools", "list", "--jq", ".[].name"), "--jq is of JSON whatever is usual")
	for expression, code := range map[string]int{".[": exit.Usage, "nothing": exit.Usage, ".[].name.x": exit.Failed,
		`error("\u001b[2J")`: exit.Failed} {
		_, errs, got := w.runCommand("pools", "list", "--jq", expression)
		require.Equal(t, code, got, "%s: %s", expression, errs)
		require.Contains(t, errs, "Next:  forewarm ")
		require.NotContains(t, errs, "\x1b")
	}
	_, errs, code := w.runCommand("pools", "list", "--jq", ".", "-o", "table")
	require.Equal(t, exit.Usage, code, errs)
}

// A shell is told the names that there are, and nothing when the server is away.
func TestCompletion(t *testing.T) {
	t.Parallel()
	w := newFilledTown(t)
	w.mustRun("allocate", "--gpus", "1", "--pool", "lab", "--name", "otter")
	names := func(args ...string) []string {
		var found []string
		for l := range strings.Lines(w.mustRun(append([]string{"__complete"}, args...)...)) {
			if n, _, _ := strings.Cut(strings.TrimSpace(l), "\t"); !strings.HasPrefix(n, ":") {
				found = append(found, n)
			}
		}
		return found
	}
	require.Contains(t, names("release", ""), "otter")
	require.Contains(t, names("wait", ""), "otter")
	require.Equal(t, []string{"lab"}, names("allocate", "--pool", ""))
	require.Equal(t, []string{"a100"}, names("allocate", "--model", ""))
	require.Equal(t, []string{"daily"}, names("schedules", "show", ""))
	require.Equal(t, []string{"acme"}, names("quota", "show", ""))
	require.Equal(t, []string{"ada@example.com"}, names("user", "caps", ""))
	require.Equal(t, output.Formats, names("pools", "list", "-o", ""))
	require.Contains(t, names("pools", ""), "edit")
	w.ledger.Scheduling().Set(ledger.SchedulingConfig{Scheduling: ledger.Scheduling{Priorities: ledger.Priorities{
		Default: "spare", Classes: map[string]ledger.PriorityClass{"spare": {}, "urgent": {Value: 1},
			"theirs": {Value: 2, Organizations: []string{"others"}}}}}})
	require.Equal(t, []string{"spare", "urgent"}, names("run", "--priority", ""))
	require.Empty(t, names("sbatch", "--priority", ""), "it is a number of Slurm's, and counts for nothing")
	require.Equal(t, []string{"lab"}, names("sbatch", "-p", ""))
	require.Equal(t, []string{"spare", "urgent"}, names("jobs", "edit", "x", "--priority", ""))
	w.env["FOREWARM_API"] = "http://127.0.0.1:1"
	require.Empty(t, names("release", ""))
	require.Equal(t, []string{"low", "normal", "high"}, names("run", "--priority", ""), "unless the site names others")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.NotEmpty(t, w.mustRun("completion", shell), shell)
	}
}
