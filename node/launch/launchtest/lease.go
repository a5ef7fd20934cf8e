package launchtest

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// NewLeased makes a program in a folder that whoever starts it waits for, for 45 seconds or until
// the test ends, as a holder can. Each time that somebody begins to wait, it is told.
func NewLeased(t *testing.T, dir string) (program string, waits <-chan os.Signal) {
	t.Helper()
	program = filepath.Join(dir, "leased")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755)) //nolint:gosec // anyone may start it
	f, err := os.Open(program)                                              //nolint:gosec // the test's own
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGIO)
	t.Cleanup(func() { signal.Stop(broken) })
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	require.NoError(t, err)
	return program, broken
}
