package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// A command that is told can be pasted, whatever the names in it are.
func TestHintsCanBePasted(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("key", "create", "first key", "--role", "viewer")
	_, errs, code := w.runCommand("key", "revoke", "first key")
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, "Next:  forewarm key revoke 'first key' --yes\n")
}

// A wrong flag is told the one that may have been meant, and no other.
func TestWrongFlagsAreToldAlikeOnes(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	for line, says := range map[string]string{
		"sbatch --foo": "Next:  forewarm sbatch --help\n", "sbatch --part x": "Next:  forewarm sbatch --partition\n",
		"sbatch --tiem 1": "Next:  forewarm sbatch --time\n", "run --gpu 1": "Next:  forewarm run --gpus\n",
		"run --wait": "Next:  forewarm run --help\n"} {
		_, errs, code := w.runCommand(strings.Fields(line)...)
		require.Equal(t, exit.Usage, code, line)
		require.Contains(t, errs, says, line)
	}
}

// A list that shows nothing says where what has ended is, unless it was asked for.
func TestEmptyListsNameAll(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	for _, noun := range []string{"allocations", "reservations"} {
		_, errs, _ := w.runCommand(noun, "list", "--name", "none")
		require.Contains(t, errs, strings.ToUpper(noun[:1])+noun[1:]+" that have ended are listed with --all.")
		for _, more := range []string{"--all", "--state=failed", "-o=json", "--since=1d"} {
			_, errs, _ = w.runCommand(noun, "list", more)
			require.NotContains(t, errs, "--all", more)
		}
	}
	_, errs, code := w.runCommand("jobs", "list", "--state", "endin")
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, `--state "endin" must be one of pending, held, scheduled, running, ending, preempted, `)
}

// Of the newest events so many are shown, or those of a period.
func TestTheNewestEvents(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("key", "create", "old", "--role", "viewer")
	w.passTime(time.Hour)
	w.mustRun("key", "create", "new", "--role", "viewer")
	created := func(last string) int {
		return strings.Count(w.mustRun("events", "--last", last, "-o", "jsonl"), `"key.created"`)
	}
	require.Equal(t, 1, created("5m"))
	require.GreaterOrEqual(t, created("1d"), 2)
	require.Equal(t, 1, created("1"))
	_, errs, code := w.runCommand("events", "--last", "soon")
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, `--last "soon" cannot be read: want a number of events, such as 20, or a period up to now, `+
		"such as 5m")
}

// A bound that another bound forbids is refused by the name of that one, with what to add.
func TestFewerNodesThanThePoolKeeps(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("pools", "create", "lab", "--provisioner", "sim", "--model", "a100-80g", "--instance-type", "sim-4xa100",
		"--gpus-per-node", "4", "--memory", "80", "--max-nodes", "3", "--min-nodes", "2", "--price", "12.80", "--simulated")
	_, errs, code := w.runCommand("pools", "edit", "lab", "--max-nodes", "1")
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs, "--max-nodes 1: the pool keeps 2 nodes at all times (min_nodes); add --min-nodes 1\n")
	require.Contains(t, errs, "Next:  forewarm pools edit lab --max-nodes 1 --min-nodes 1\n")
	w.mustRun("pools", "edit", "lab", "--max-nodes", "1", "--min-nodes", "1")
	require.Contains(t, w.mustRun("explain", "lab"), "POOL (use: reserved) · lab: ")
}

// What a job waits for may be named, and what is not there is told by both.
func TestAfterWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	_, errs, code := w.runCommand("run", "-d", "--after", "not here", "--", "true")
	require.Equal(t, exit.NotFound, code)
	require.Contains(t, errs, "--after 'not here': there is no job or array of this id or name")
}

// Whoever pipes a table gets one, and an end; the last minutes of a lease are told to the second.
func TestTopIntoAPipe(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.mustRun("pools", "create", "lab", "--provisioner", "sim", "--model", "a100-80g", "--instance-type", "sim-4xa100",
		"--gpus-per-node", "4", "--memory", "80", "--max-nodes", "1", "--price", "12.80", "--simulated")
	w.mustRun("allocate", "--gpus", "2", "--pool", "lab", "--name", "mine", "--for", "1h", "--wait")
	w.onPause = func() { require.Fail(t, "it goes on") }
	require.Equal(t, 1, strings.Count(w.mustRun("top"), "HELD BY"))
	w.clock.Advance(59*time.Minute + 10*time.Second)
	require.Regexp(t, ` mine +\d\ds +-`, w.mustRun("top"))
}

// On a terminal long sentences do not push wide tables off the screen.
func TestWideTablesAreClipped(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	_, _, code := w.runCommand("key", "create", strings.Repeat("very ", 11)+"long", "--role", "viewer")
	require.Zero(t, code)
	whole := strings.Repeat("very ", 11) + "long"
	require.Contains(t, w.mustRun("key", "list", "-o", "wide"), whole)
	w.terminal = true
	require.NotContains(t, w.mustRun("key", "list", "-o", "wide"), whole)
	require.Contains(t, w.mustRun("key", "list", "-o", "wide"), "very very very very very very very very…")
	require.Contains(t, w.mustRun("key", "list"), whole)
}
