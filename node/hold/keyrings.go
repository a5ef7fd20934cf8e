package hold

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// keyUsers is where the kernel lists who has keys; without it, it keeps none.
const keyUsers = "/proc/key-users"

// clearKeyrings removes the keys that a user left in the kernel: its persistent keyring outlives its last process by
// days, and its own keyring lasts until the machine boots anew.
func clearKeyrings(uid uint32) error {
	if !hasKeys(uid) { // asking for a keyring would make one
		return nil
	}
	if err := asRealUser(uid, func() error { return clearKeyringsOfThread(uid) }); err != nil {
		return fmt.Errorf("removing the keys of the hold: %w", err)
	}
	return nil
}

func hasKeys(uid uint32) bool {
	text, err := os.ReadFile(keyUsers)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), fmt.Sprintf("%d:", uid)) {
			return true
		}
	}
	return false
}

// clearKeyringsOfThread clears the keyrings of the user that the thread has.
func clearKeyringsOfThread(uid uint32) error {
	for _, keyring := range []int{unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_USER_SESSION_KEYRING} {
		if err := clearKeyring(keyring); err != nil {
			return err
		}
	}
	// A link from a keyring of the thread gives it the right to clear the persistent one.
	const link = unix.KEY_SPEC_THREAD_KEYRING
	persistent, err := unix.KeyctlInt(unix.KEYCTL_GET_PERSISTENT, int(uid), link, 0, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil // the kernel has none
	}
	if err != nil {
		return err
	}
	return errors.Join(clearKeyring(persistent), clearKeyring(link))
}

func clearKeyring(id int) error {
	_, err := unix.KeyctlInt(unix.KEYCTL_CLEAR, id, 0, 0, 0)
	return err
}

// asRealUser calls do on a thread whose real user is another one, by which the kernel knows whose keyrings are meant.
// Its effective user stays root.
func asRealUser(uid uint32, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := setRealUser(uid)
		if err == nil {
			err = do()
		}
		back := setRealUser(0)
		if back == nil { // otherwise the thread ends with its goroutine
			runtime.UnlockOSThread()
		}
		done <- errors.Join(err, back)
	}()
	return <-done
}

// setRealUser sets the real user of the thread alone, as the standard library, which sets that of all, does not.
func setRealUser(uid uint32) error {
	const same = ^uintptr(0)
	if _, _, errno := unix.Syscall(unix.SYS_SETRESUID, uintptr(uid), same, same); errno != 0 {
		return errno
	}
	return nil
}
