package slurm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/forewarm/forewarm/internal/statefile"
)

// memoryVersion changes when an older program could misread the file.
const memoryVersion = 1

type memoryFile struct {
	Version  int
	Machines map[string]memo
}

// mergeMemos joins what two processes know. Of two memos of a machine the one that
// knows more of its end wins.
func mergeMemos(ours, stored map[string]memo) map[string]memo {
	for token, o := range stored {
		mine, known := ours[token]
		better := mine.ID == o.ID && !o.Gone.IsZero() && (mine.Gone.IsZero() || mine.Ended.IsZero())
		if !known || better {
			ours[token] = o
		}
	}
	return ours
}

func (m *memory) readFile() (map[string]memo, error) {
	file := memoryFile{Version: memoryVersion, Machines: map[string]memo{}}
	if m.path == "" {
		return file.Machines, nil
	}
	if _, err := statefile.Read(m.path, &file); err != nil {
		return nil, err
	}
	if file.Version != memoryVersion || file.Machines == nil {
		return nil, fmt.Errorf("state file %s is damaged: it has version %d, this program reads %d", m.path,
			file.Version, memoryVersion)
	}
	for token, o := range file.Machines {
		if o.Token != token || o.ID == "" || o.Known.IsZero() {
			return nil, fmt.Errorf("state file %s is damaged: a machine without id, token or time", m.path)
		}
	}
	return file.Machines, nil
}

// lockFile keeps other processes of ours from writing at the same time.
func lockFile(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the state: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the state: %w", err), file.Close())
	}
	return func() { file.Close() }, nil
}
