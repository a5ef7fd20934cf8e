package hold

import (
	"errors"
	"fmt"
	"os"
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
	// The kernel knows by the real user whose keyrings are meant; the effective one stays root.
	if err := asUser(uid, sameUser, func() error { return clearKeyringsOfThread(uid) }); err != nil {
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

// clearKeyringsOfThread clears the keyrings of a user, on a thread whose real user it is.
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
