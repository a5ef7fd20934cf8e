package hold

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// sameUser leaves a user as it is.
const sameUser = ^uint32(0)

// asUser calls do on a thread with another real or effective user.
func asUser(real, effective uint32, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := setThreadUser(real, effective)
		if err == nil {
			err = do()
		}
		back := setThreadUser(0, 0)
		if back == nil { // otherwise the thread ends with its goroutine
			runtime.UnlockOSThread()
		}
		done <- errors.Join(err, back)
	}()
	return <-done
}

// setThreadUser sets the users of this thread alone; the standard library would set those of all.
func setThreadUser(real, effective uint32) error {
	_, _, errno := unix.Syscall(unix.SYS_SETRESUID, uintptr(real), uintptr(effective), uintptr(sameUser))
	if errno != 0 {
		return errno
	}
	return nil
}
