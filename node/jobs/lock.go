package jobs

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// beginsWithin is how long a runner may take until its command is in its place: the launcher has ten
// seconds.
const beginsWithin = 20 * time.Second

var errHangs = errors.New("its runner hangs")

// takeLock makes a file, and locks it for whoever has what is returned, also as an inherited file.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // in the daemon's own folder
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return f, nil
}

// isHeld reports whether somebody holds a lock.
func isHeld(path string) bool {
	f, err := os.Open(path) //nolint:gosec // in the daemon's own folder
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// awaitRelease waits until nobody holds a lock.
func awaitRelease(path string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(beginsWithin)
	defer over.Stop()
	for isHeld(path) {
		select {
		case <-tick.C:
		case <-over.C:
			return errHangs
		}
	}
	return nil
}
