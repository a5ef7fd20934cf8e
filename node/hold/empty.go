package hold

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A holder that is still here may exchange any folder of a path for a link, while root works on what another
// one left. So each step here resolves one name, in a folder that is open, and follows no link.

// openFolder opens a folder that is in another one.
func openFolder(in *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(in.Fd()), name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// statIn returns what is known of an entry of a folder, of a link itself.
func statIn(in *os.File, name string) (s unix.Stat_t, err error) {
	err = unix.Fstatat(int(in.Fd()), name, &s, unix.AT_SYMLINK_NOFOLLOW)
	return s, err
}

// statOf returns what is known of an open folder.
func statOf(f *os.File) (s unix.Stat_t, err error) {
	err = unix.Fstat(int(f.Fd()), &s)
	return s, err
}

// namesAtOnce is how many names of a folder are read before they are worked on: a holder may leave millions.
const namesAtOnce = 1024

// eachName calls do for each entry of a folder, until its time is over.
func eachName(ctx context.Context, f *os.File, do func(name string)) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for ctx.Err() == nil {
		names, err := f.Readdirnames(namesAtOnce)
		for _, name := range names {
			do(name)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) { // a folder that is gone by now had nothing left
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// removeFolder removes a folder that is in another one, if it is to be removed by what is known of it, and returns
// how many entries there were, itself included.
func removeFolder(ctx context.Context, in *os.File, name string, wanted filter) (int, error) {
	if os.Getuid() != 0 {
		unlock(in, name)
	}
	f, err := openFolder(in, name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	if s, err := statOf(f); err != nil || !wanted(s) {
		return 0, err
	}
	removed, err := emptyFolder(ctx, f)
	if err == nil {
		err = unix.Unlinkat(int(in.Fd()), name, unix.AT_REMOVEDIR)
	}
	if err != nil {
		return removed, err
	}
	return removed + 1, nil
}

// unlock lets a daemon that is not root into a folder that its own user has closed.
func unlock(in *os.File, name string) {
	fd, err := unix.Openat(int(in.Fd()), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return // as whoever opens it will find
	}
	defer func() { _ = unix.Close(fd) }()
	_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
}

// emptyFolder removes all that is in a folder, and returns how many entries there were. Folders in its folders are
// moved up into it, so that neither paths nor open files grow with the depth.
func emptyFolder(ctx context.Context, top *os.File) (removed int, err error) {
	e := emptying{ctx: ctx, top: top}
	for {
		found, before := 0, e.removed
		err := eachName(ctx, top, func(name string) {
			found++
			e.removeOne(name)
		})
		if err != nil || found == 0 {
			return e.removed, err
		}
		if e.removed == before {
			return e.removed, errors.Join(e.failed, fmt.Errorf("%d entries stay", found))
		}
	}
}

// emptying is the work of emptyFolder.
type emptying struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one call
	top     *os.File
	removed int
	failed  error // of the last entry that could not be removed
}

// removeOne removes an entry of the top folder, and moves up the folders that are in it.
func (e *emptying) removeOne(name string) {
	if !e.isFolder(e.top, name) {
		return
	}
	if os.Getuid() != 0 {
		unlock(e.top, name)
	}
	f, err := openFolder(e.top, name)
	if err != nil {
		e.note(err)
		return
	}
	defer func() { _ = f.Close() }()
	e.note(eachName(e.ctx, f, func(entry string) {
		if e.isFolder(f, entry) { // a name that nobody can have taken before
			e.note(unix.Renameat(int(f.Fd()), entry, int(e.top.Fd()), rand.Text()))
		}
	}))
	e.removed += e.note(unix.Unlinkat(int(e.top.Fd()), name, unix.AT_REMOVEDIR))
}

// isFolder reports whether an entry is a folder, and removes it if not.
func (e *emptying) isFolder(in *os.File, name string) bool {
	err := unix.Unlinkat(int(in.Fd()), name, 0)
	if errors.Is(err, unix.EISDIR) {
		return true
	}
	e.removed += e.note(err)
	return false
}

// note notes an error, and returns how many entries were removed without one: 1 or 0.
func (e *emptying) note(err error) int {
	switch {
	case err == nil:
		return 1
	case !errors.Is(err, unix.ENOENT):
		e.failed = err
	}
	return 0
}
