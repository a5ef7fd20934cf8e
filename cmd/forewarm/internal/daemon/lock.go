package daemon

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockDataDir takes the data directory for this process. The machines that sim and
// local know are in files of it that serve one process: a second one would
// overwrite what the first has made, and a machine would be lost or made twice.
// The system frees the lock when the process ends, however it ends.
func lockDataDir(dir string) (release func() error, err error) {
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

// dataDirID names a data directory for ever, and the host that it is on: whoever works
// with it has the files of provisioners that serve one worker at a time.
func dataDirID(dir string) (id, host string, err error) {
	if host, err = os.Hostname(); err != nil {
		host = "an unknown host"
	}
	path := filepath.Join(dir, "worker-id")
	text, err := os.ReadFile(path)
	if id = strings.TrimSpace(string(text)); err == nil && id != "" {
		return id, host, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("reading the name of the data directory: %w", err)
	}
	id = rand.Text()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", "", fmt.Errorf("naming the data directory: %w", err)
	}
	return id, host, nil
}

// writeNew makes a file that must not be there yet, whole and durable.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.Write(data)
	return errors.Join(werr, f.Sync(), f.Close())
}
