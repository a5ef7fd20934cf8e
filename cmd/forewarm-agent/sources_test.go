package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/forklock"
)

// without is a configuration whose only source is the given one.
func (w *home) useSource(source string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.pathOf("agent.yaml"),
		[]byte("pool: lab\nstate_dir: "+w.pathOf("state")+"\nsources: ["+source+"]\n"), 0o600))
}

// Where nothing can be read, it is said, with the file and what to do, and no run looks as if it worked.
func TestNothingToReadIsAFailure(t *testing.T) {
	t.Parallel()
	for source, says := range map[string]string{
		"{kind: jobs, path: DIR/none.csv, format: csv}":     "there is no file DIR/none.csv",
		"{kind: jobs, path: DIR/none.sacct, format: sacct}": "there is no file DIR/none.sacct",
		"{kind: log, path: 'DIR/none/*.log'}":               "no file matches DIR/none/*.log",
		"{kind: jobs, path: DIR/train.log, format: squeue}": "no column",
		"{kind: jobs, path: DIR, format: csv}":              "name a regular file",
	} {
		w := newHome(t)
		w.appendFile("train.log", "this is no queue\n")
		w.useSource(strings.ReplaceAll(source, "DIR", w.dir))
		for _, args := range [][]string{{"run", "--dry-run"}, {"run", "--once"}, {"run"}} {
			out, errs, code := w.runCommand(t.Context(), args...)
			require.Equal(t, exitFailed, code, source)
			require.Contains(t, errs, "nothing can be read", source)
			require.Contains(t, errs, strings.ReplaceAll(says, "DIR", w.dir), source)
			require.Contains(t, errs, "\nNext:  make the file")
			require.Empty(t, out)
		}
	}
}

// One source that is not there is told, and does not stop the others; nor does a history that is away for a while stop
// an agent that has learned from it.
func TestAMissingSourceIsToldBesideOthers(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.writeConfig("")
	require.NoError(t, os.Remove(w.pathOf("train.log")))
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "there is no file "+w.pathOf("train.log")+"; it is read once it exists")
	require.NoError(t, os.Remove(w.pathOf("jobs.csv")))
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "there is no file "+w.pathOf("jobs.csv"))
}

// Patterns are followed: of logs the lines that come, of histories all rows of all files.
func TestPatternsOfFiles(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	require.NoError(t, os.Mkdir(w.pathOf("past"), 0o700))
	rows, err := os.ReadFile(w.pathOf("jobs.csv"))
	require.NoError(t, err)
	lines := strings.SplitAfter(string(rows), "\n")
	for name, part := range map[string][]string{"past/1.csv": lines[1:300], "past/2.csv": lines[300:]} {
		require.NoError(t, os.WriteFile(w.pathOf(name), []byte(lines[0]+strings.Join(part, "")), 0o600))
	}
	w.useSource("{kind: jobs, path: '" + w.pathOf("past/*.csv") + "', format: csv}, {kind: log, path: '" +
		w.pathOf("*.log") +
		"'}")
	_, errs, code := w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "504 new rows or lines")
	w.appendFile("train.log", "will sweep\n")
	_, errs, code = w.runCommand(t.Context(), "run", "--once")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "*.log: 1 new rows or lines")
	_, errs, code = w.runCommand(t.Context(), "backtest")
	require.Equal(t, exitUsage, code, errs)
	require.Contains(t, errs, "is a pattern: name one file with --history")
}

// Without a history, init takes what lies there; with none, it says what is missing, in the file too.
func TestInitWithoutAHistory(t *testing.T) {
	w := newHome(t)
	tools := t.TempDir()
	t.Setenv("PATH", tools)
	fresh := func() {
		t.Helper()
		require.NoError(t, os.RemoveAll(w.pathOf("agent.yaml")))
	}
	_, errs, code := w.runCommand(t.Context(), "init")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, w.pathOf("jobs.csv")+": 504 GPU jobs (csv)")
	require.Contains(t, errs, "Next:  forewarm-agent run --dry-run")
	_, errs, code = w.runCommand(t.Context(), "run", "--dry-run")
	require.Equal(t, exitOK, code, errs)

	require.NoError(t, os.Remove(w.pathOf("jobs.csv")))
	for tool, want := range map[string][2]string{
		"":        {"jobs.csv", "a CSV file with the columns"},
		"kubectl": {"jobs.csv", "a CSV file with the columns"},
		"squeue":  {"jobs.squeue", "make it: " + squeueLine},
		"sacct":   {"jobs.sacct", "make it: " + sacctLine},
	} {
		fresh()
		if tool != "" {
			require.NoError(t, forklock.WriteProgram(filepath.Join(tools, tool), "#!/bin/sh\n"))
		}
		_, errs, code = w.runCommand(t.Context(), "init")
		require.Equal(t, exitOK, code, errs)
		require.Contains(t, errs, "MISSING: "+w.pathOf(want[0])+" is not there")
		require.Contains(t, errs, want[1])
		text, err := os.ReadFile(w.pathOf("agent.yaml"))
		require.NoError(t, err)
		require.Contains(t, string(text), "# MISSING: this file does not exist yet")
		_, errs, code = w.runCommand(t.Context(), "run", "--dry-run")
		require.Equal(t, exitFailed, code, errs)
		require.Contains(t, errs, "there is no file "+w.pathOf(want[0]))
		if tool != "" {
			require.NoError(t, os.Remove(filepath.Join(tools, tool)))
		}
	}
}
