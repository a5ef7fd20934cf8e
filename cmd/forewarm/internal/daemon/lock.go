package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// hold takes the data directory for this process. The machines that sim and
// local know are in files of it that serve one process: a second one would
// overwrite what the first has made, and a machine would be lost or made twice.
// The system frees the lock when the process ends, however it ends.
func hold(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a descriptor fits an int
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("another forewarm works with %s: stop it, or choose another --data-dir", dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
