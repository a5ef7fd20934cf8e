package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/pagetest"
)

// Every command line of the pages names a command that there is, with flags and as many arguments as it takes.
func TestCommandLinesOfPages(t *testing.T) {
	t.Parallel()
	lines := pagetest.ReadLines(t, "../..", "forewarm")
	require.Greater(t, len(lines), 80)
	for _, line := range lines {
		require.NoError(t, pagetest.Check(newRoot(), line.Args), "%s: forewarm %s", line.Where,
			strings.Join(line.Args, " "))
	}
}

// A page that shows what is not there is found.
func TestWrongCommandLinesAreFound(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"pools create a --gpu 2", "status now", "reservations show a b",
		"explain a b c d"} {
		require.Error(t, pagetest.Check(newRoot(), strings.Fields(wrong)), wrong)
	}
}
