package cli

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// naming is an argument that names something that is there.
var naming = regexp.MustCompile(`^\[?[A-Z]+(\|[A-Z]+)*\]?$`)

// making are arguments that name nothing that is there.
var making = []string{"NAME", "EMAIL", "METHOD", "DIR", "COMMAND"}

// needed are the arguments and flags without which a command asks for no name.
var needed = map[string]string{
	"extend": "--by 1h", "quota set": "--max-gpus 1", "pools edit": "--max-nodes 1", "plan quota": "--max-gpus 1",
	"plan pool":  "--max-nodes 1",
	"jobs edit":  "--name other",
	"users caps": "--none", "allocate": "--gpus 1", "plan allocate": "--gpus 1", "explain allocate": "--gpus 1",
	"reserve":         "--gpus 1 --at 2026-03-02T12:00:00Z --for 1h",
	"plan reserve":    "--gpus 1 --at 2026-03-02T12:00:00Z --for 1h",
	"explain reserve": "--gpus 1 --at 2026-03-02T12:00:00Z --for 1h",
	"run":             "--script testdata/jobs/train.sh",
	"users create":    "bob@example.com --role member", "key create": "ci",
}

// unknown are the arguments of a command with a name that is not there.
func unknown(path string) []string {
	switch path {
	case "port":
		return []string{"nosuch", "8888", "--yes"}
	case "cp":
		return []string{"nosuch:there", "here", "--yes"}
	case "nodes label", "nodes taint", "pools label", "pools taint":
		return []string{"nosuch", "a=b"}
	}
	return []string{"nosuch", "--yes"}
}

// What is not there has one exit code, whichever command was told of it, as an
// argument or by a flag, and in a dry run as well.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	tried := 0
	commands := leafCommands(w.newRoot())
	for _, path := range slices.Sorted(maps.Keys(commands)) {
		c := commands[path]
		args := append(strings.Fields(path), strings.Fields(needed[path])...)
		var lines [][]string
		if use := strings.Fields(c.Use); len(use) > 1 && naming.MatchString(use[1]) &&
			!slices.Contains(making, use[1]) {
			lines = append(lines, append(slices.Clone(args), unknown(path)...))
		}
		for _, flag := range []string{"pool", "org", "user", "node"} {
			if f := c.Flags().Lookup(flag); f != nil && len(lines) == 0 {
				lines = append(lines, append(slices.Clone(args), "--"+flag, "nosuch"))
			}
		}
		for _, line := range lines {
			tried++
			_, errs, code := w.runCommand(line...)
			require.Equal(t, exit.NotFound, code, "%v: %s", line, errs)
			require.Contains(t, errs, "nosuch", line)
			_, dry, code := w.runCommand(append(line, "-n")...)
			require.Equal(t, exit.NotFound, code, "%v -n: %s", line, dry)
			require.Equal(t, withoutCounts(errs), withoutCounts(dry), line)
		}
	}
	require.Greater(t, tried, 50)
	_, errs, code := w.runCommand("status", "--context", "nosuch")
	require.Equal(t, exit.NotFound, code, errs)
}

// withoutCounts takes out what two runs of a command tell apart: its decisions and
// what it would cost.
func withoutCounts(errs string) string {
	return regexp.MustCompile(`(?m)^.*decisions show.*\n`).ReplaceAllString(errs, "")
}
