package slurm

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/forklock"
)

// slowReceiver takes nothing before the command that prints is long gone.
type slowReceiver struct {
	bytes.Buffer
	pid   func() int
	grace time.Duration
}

func (s *slowReceiver) endWith(func())  {}
func (s *slowReceiver) hadEnough() bool { return false }

func (s *slowReceiver) Write(data []byte) (int, error) {
	n, err := s.Buffer.Write(data)
	for s.pid() > 0 && syscall.Kill(s.pid(), 0) == nil {
		<-time.After(time.Millisecond)
	}
	<-time.After(5 * s.grace)
	return n, err
}

// testRunner runs the one program of a folder, a script.
func testRunner(t *testing.T, script string) runner {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, forklock.WriteProgram(filepath.Join(dir, "squeue"), "#!/bin/sh\n"+script))
	r := newRunner(Config{BinDir: dir, Timeout: time.Minute})
	r.grace = 20 * time.Millisecond
	return r
}

// What a command has printed is taken to its end, however long that takes: the command has
// done its work.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	r := testRunner(t, `echo $$; head -c 60000 /dev/zero | tr '\0' x; echo; exit 3`)
	s := &slowReceiver{grace: r.grace}
	s.pid = func() int {
		line, _, _ := strings.Cut(s.String(), "\n")
		pid, _ := strconv.Atoi(line)
		return pid
	}
	got, err := r.runInto(t.Context(), s, "", "squeue")
	require.NoError(t, err)
	require.Equal(t, 3, got.code)
	require.Equal(t, 60_000, strings.Count(s.String(), "x"))
}

// A process that a command leaves behind, with its output open, is not waited for. The
// chatty one prints slowly enough not to fill an answer before the command's end is noticed.
func TestOutputHeldOpen(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]string{"silent": "sleep 60", "chatty": "while :; do echo y; done"} {
		r := testRunner(t, "echo $$; ("+rest+") & exit 0\n")
		got, err := r.runCommand(t.Context(), "", "squeue")
		require.ErrorIs(t, err, exec.ErrWaitDelay, name)
		group, err := strconv.Atoi(strings.SplitN(got.stdout, "\n", 2)[0])
		require.NoError(t, err, name)
		require.NoError(t, syscall.Kill(-group, syscall.SIGKILL), name)
	}
}

// One that does not end by its time is killed, with all that it has started.
func TestCommandThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	r := testRunner(t, "echo $$; sleep 60; exit 0\n")
	r.timeout = 200 * time.Millisecond
	_, err := r.runCommand(t.Context(), "", "squeue")
	require.ErrorContains(t, err, "squeue did not end")
}
