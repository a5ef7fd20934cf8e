package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is piped into the command is not lost in silence, and not waited for.
func TestRunSaysThatAPipeIsNotRead(t *testing.T) {
	t.Parallel()
	w, s := newJobServer(t, endedWith(1, 0))
	dir := t.TempDir()
	script, empty := filepath.Join(dir, "script"), filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(script, []byte("true\n"), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	pipe, end, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(pipe.Close(), end.Close())) }()
	open := func(name string) *os.File {
		f, err := os.Open(name)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	const note = "Note      standard input is not sent"
	for _, c := range []struct {
		in   *os.File
		args string
		says string
	}{{pipe, "run -- cat", note + ": --input - sends it\n"}, {open(script), "run -- cat", note + ": --input - sends it\n"},
		{pipe, "run --script " + script, note + ": the input of a script is the script itself"},
		{open(script), "run --input - -- cat", ""}, {open(empty), "run -- cat", ""}, {open(os.DevNull), "run -- cat", ""},
		{pipe, "run -d -- cat", ""}} {
		w.in = c.in
		_, errs, code := w.runCommand(strings.Fields(c.args)...)
		require.Zero(t, code, errs)
		if c.says == "" {
			require.NotContains(t, errs, note, c.args)
		} else {
			require.Contains(t, errs, c.says, c.args)
		}
	}
	require.Nil(t, s.sent.Input)
}
