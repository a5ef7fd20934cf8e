// Package worktest stands in for programs of holders in tests.
package worktest

import (
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ListenAs listens on a free port of the loopback interface as a user, by its number, as a
// program of that user does. It needs root for another user than one's own.
func ListenAs(t testing.TB, user string) net.Listener {
	t.Helper()
	return ListenAtAs(t, "127.0.0.1:0", user)
}

// ListenAtAs is ListenAs for another address; port 0: a free one.
func ListenAtAs(t testing.TB, address, user string) net.Listener {
	t.Helper()
	uid, err := strconv.Atoi(user)
	require.NoError(t, err)
	runtime.LockOSThread() // a thread has a user of its own for what it opens
	defer runtime.UnlockOSThread()
	before, err := unix.SetfsuidRetUid(uid)
	require.NoError(t, err)
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	_, err = unix.SetfsuidRetUid(before)
	require.NoError(t, err)
	return l
}
