package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// single are the commands whose names have one number only, or are verbs.
var single = []string{"allocate", "api", "apply", "audit", "calendar", "completion", "explain", "extend", "help",
	"history", "login", "man", "options", "ssh", "env", "top", "exec", "port", "cp",
	"exit-codes", "prewarm", "queue", "recovery", "replay",
	"run", "release", "reserve", "sbatch", "slurm", "status", "version", "wait", "whoami"}

// What is about things is found under one of them and under many.
func TestNounsHaveTwoNumbers(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	for _, c := range w.newRoot().Commands() {
		if slices.Contains(single, c.Name()) {
			continue
		}
		other := c.Name() + "s"
		if strings.HasSuffix(c.Name(), "s") {
			other = strings.TrimSuffix(c.Name(), "s")
		}
		require.Contains(t, c.Aliases, other, c.Name())
		require.Equal(t, w.mustRun(c.Name(), "--help"), w.mustRun(other, "--help"))
	}
	require.Equal(t, w.mustRun("key", "list", "-o", "name"), w.mustRun("keys", "list", "-o", "name"))
	require.Equal(t, w.mustRun("orgs", "list"), w.mustRun("organization", "list"))
}
