package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/pagetest"
)

// Every command line of the pages, those of an upgrade among them, names a command that there is, with its flags.
func TestCommandLinesOfPages(t *testing.T) {
	t.Parallel()
	lines, upgrades := pagetest.ReadLines(t, "../..", "forewarm-node"), 0
	require.GreaterOrEqual(t, len(lines), 5)
	for _, line := range lines {
		root := newRoot(outside{clock: clock.System{}, uptime: machineUptime, getenv: func(string) string { return "" }})
		require.NoError(t, pagetest.Check(root, line.Args), "%s: forewarm-node %s", line.Where,
			strings.Join(line.Args, " "))
		if line.Args[0] == "upgrade" {
			upgrades++
		}
	}
	require.Positive(t, upgrades)
}

// Every example of --help is a command line that is understood.
func TestExamplesOfHelp(t *testing.T) {
	t.Parallel()
	tree := func() *cobra.Command {
		return newRoot(outside{clock: clock.System{}, uptime: machineUptime, getenv: func(string) string { return "" }})
	}
	tried := 0
	for _, c := range tree().Commands() {
		for line := range strings.Lines(c.Example) {
			_, args, ours := strings.Cut(strings.TrimSpace(line), "forewarm-node ")
			require.True(t, ours, line)
			args = regexp.MustCompile(`\$\(.*\)`).ReplaceAllString(args, "SUM")
			require.NoError(t, pagetest.Check(tree(), strings.Fields(args)), line)
			tried++
		}
	}
	require.GreaterOrEqual(t, tried, 2)
}

// commentedKey is a key that the example shows as a comment.
var commentedKey = regexp.MustCompile(`(?m)^# ([a-z_]+: \S)`)

// What the example file shows as comments loads, too, and it has every key that there is.
func TestTheExampleIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(examples)
	require.NoError(t, err)
	load := func(text string) config {
		path := filepath.Join(t.TempDir(), "node.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		c, err := loadConfig(path, func(string) string { return "" }, pflag.NewFlagSet("", pflag.ContinueOnError))
		require.NoError(t, err, text)
		return c
	}
	whole := commentedKey.ReplaceAllString(string(text), "$1")
	real := regexp.MustCompile(`(?m)^simulate.*\n`).ReplaceAllString(whole, "")
	require.NotEmpty(t, load(real).DCGMExporter)
	simulated := regexp.MustCompile(`(?m)^dcgm_.*\n`).ReplaceAllString(whole, "")
	require.Equal(t, 8, load(simulated).Simulate)
	manual, err := os.ReadFile("../../docs/node.md")
	require.NoError(t, err)
	for f := range reflect.TypeFor[config]().Fields() {
		key := f.Tag.Get("yaml")
		require.Regexp(t, "(?m)^"+key+":", whole, "deploy/forewarm-node.example.yaml lacks %s", key)
		require.Contains(t, string(manual), key, "docs/node.md lacks %s", key)
	}
}
