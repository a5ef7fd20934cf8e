package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// removeWithin is how long it may take to find and remove what is left: somebody may go on filling a folder.
const removeWithin = 90 * time.Second

// sharedFolders are where everybody may leave files.
var sharedFolders = []string{"/tmp", "/var/tmp", "/dev/shm", queueFolder, "/run/lock", "/var/crash"}

// removeLeftovers removes the files of a hold, and its shared memory, semaphores and message
// queues, reads back that they are gone, and returns how many there were. Where the hold has
// no user of its own, nobody can tell whose the files in shared folders are.
func (s scope) removeLeftovers() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	removed, err := removeHome(ctx, s.record.Home)
	if !s.record.OwnUser || err != nil {
		return removed, err
	}
	n, err := s.removeShared(ctx)
	return removed + n, err
}

// removeShared removes what is in shared folders, and of System V's objects.
func (s scope) removeShared(ctx context.Context) (removed int, err error) {
	clear(s.left)
	for _, dir := range s.folders {
		n, err := s.removeOwned(ctx, dir)
		if removed += n; err != nil {
			return removed, err
		}
	}
	n, err := removeIPC(s.isOver)
	return removed + n, err
}

// removeOwned removes what users whose holds are over own in a shared folder, until a look finds nothing.
func (s scope) removeOwned(ctx context.Context, dir string) (removed int, err error) {
	owned := func(of unix.Stat_t) bool { return s.isOver(of.Uid) }
	for {
		look, err := clearShared(ctx, dir, owned)
		if removed += look.removed; err != nil || !look.found {
			maps.Copy(s.left, look.left)
			return removed, err
		}
	}
}

// removeHome removes the folder of a hold, and returns how many entries it had.
func removeHome(ctx context.Context, dir string) (count int, err error) {
	in, err := os.Open(filepath.Dir(dir))
	if err == nil {
		defer func() { _ = in.Close() }()
		count, err = removeFolder(ctx, in, filepath.Base(dir), func(unix.Stat_t) bool { return true })
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return count, fmt.Errorf("removing the folder of the hold: %w", err)
	}
	return max(0, count-1), nil
}
