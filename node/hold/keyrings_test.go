package hold_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/node/hold"
)

// Keys that a holder left in the kernel are gone with its hold.
func TestKeysAreRemoved(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	k := keeperIn(t, newDir(t))
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	require.Equal(t, []int{0, 0}, keysOf(t, p.UID, func([]int) {}))
	left := keysOf(t, p.UID, func(keyrings []int) {
		for _, keyring := range keyrings {
			_, err := unix.AddKey("user", "left", []byte("secret"), keyring)
			require.NoError(t, err)
		}
	})
	require.Equal(t, []int{1, 1}, left)
	proofOf(t, k, alc(1))
	require.Equal(t, []int{0, 0}, keysOf(t, p.UID, func([]int) {}))
}

// keysOf does something as a user, with its own and its persistent keyring, and counts the keys in them.
func keysOf(t *testing.T, uid uint32, do func(keyrings []int)) (counts []int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	setRealUser(t, uid)
	defer setRealUser(t, 0)
	persistent, err := unix.KeyctlInt(unix.KEYCTL_GET_PERSISTENT, int(uid), unix.KEY_SPEC_THREAD_KEYRING, 0, 0)
	require.NoError(t, err)
	keyrings := []int{unix.KEY_SPEC_USER_KEYRING, persistent}
	do(keyrings)
	for _, keyring := range keyrings {
		size, err := unix.KeyctlInt(unix.KEYCTL_READ, keyring, 0, 0, 0)
		require.NoError(t, err)
		counts = append(counts, size/4) // an id each
	}
	return counts
}

func setRealUser(t *testing.T, uid uint32) {
	t.Helper()
	_, _, errno := unix.Syscall(unix.SYS_SETRESUID, uintptr(uid), ^uintptr(0), ^uintptr(0))
	require.Zero(t, errno)
}
