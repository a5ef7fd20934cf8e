package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// keptOpen is how many folders, of those that lie in each other, are kept open on the way down.
	keptOpen = 128
	// mostWaiting bounds how many folders, which wait for a look, are remembered at a time.
	mostWaiting = 1 << 20
)

// filter chooses by what is known of an entry.
type filter func(unix.Stat_t) bool

// finder is told of an entry, in the folder that has it.
type finder func(in *os.File, name string) error

// errMoved says that a folder was moved or removed while somebody looked through it.
var errMoved = errors.New("folders are moved all the time")

// walkShared calls found for each wanted entry of a shared folder, and returns its first error. It does not look
// into what is wanted. It begins anew where folders are moved, until its time is over.
func walkShared(ctx context.Context, dir string, wanted filter, found finder) error {
	for {
		top, err := os.Open(dir) //nolint:gosec // one of the machine's
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			w := walk{ctx: ctx, wanted: wanted, found: found, at: top}
			err = w.through()
			w.close()
		}
		if err != nil && (!errors.Is(err, errMoved) || ctx.Err() != nil) {
			return fmt.Errorf("looking through %s: %w", dir, err)
		}
		if err == nil {
			return nil
		}
	}
}

// walk is a way through a folder, which needs no more open files the deeper it goes.
type walk struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	wanted filter
	found  finder

	at    *os.File
	above []level
	level
	total int // of the folders that wait, on all levels
}

// level is a folder on the way.
type level struct {
	folder  *os.File // nil: it is opened again from the one below
	is      identity
	waiting []string // the folders in it that wait for a look
}

// identity tells a folder from any other, wherever it is moved.
type identity struct{ device, inode uint64 }

func identityOf(s unix.Stat_t) identity { return identity{s.Dev, s.Ino} }

func (w *walk) through() error {
	for {
		if err := w.look(); err != nil {
			return err
		}
		for entered := false; !entered; {
			for len(w.waiting) == 0 {
				if len(w.above) == 0 {
					return nil
				}
				if err := w.goUp(); err != nil {
					return err
				}
			}
			var err error
			if entered, err = w.goDown(); err != nil {
				return err
			}
		}
	}
}

// look looks at each entry of the folder, and has those wait that are to be looked into.
func (w *walk) look() error {
	var failed error
	err := eachName(w.ctx, w.at, func(name string) {
		s, err := statIn(w.at, name)
		switch {
		case failed != nil || isElsewhere(err):
		case err != nil:
			failed = err
		case w.wanted(s):
			failed = w.found(w.at, name)
		case isOpenToHolders(s):
			w.waiting = append(w.waiting, name)
		}
	})
	w.total += len(w.waiting)
	if failed == nil && err == nil && w.total > mostWaiting {
		err = errors.New("it has too many folders")
	}
	return errors.Join(failed, err)
}

// isOpenToHolders reports whether a holder may have left something in there: in folders of others to which everybody
// may write, and in those of any holder, whoever may write to them now.
func isOpenToHolders(s unix.Stat_t) bool {
	return s.Mode&unix.S_IFMT == unix.S_IFDIR && (s.Mode&0o002 != 0 || isHolder(s.Uid))
}

// isElsewhere reports whether an entry is gone, is no folder any more, or is in a file system of FUSE,
// which lets nobody in but its own user.
func isElsewhere(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.EACCES)
}

// goDown enters one of the folders that wait, if it is still there.
func (w *walk) goDown() (entered bool, err error) {
	last := len(w.waiting) - 1
	name := w.waiting[last]
	w.waiting = w.waiting[:last]
	w.total--
	below, err := openFolder(w.at, name)
	if isElsewhere(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := statOf(below)
	here, failed := statOf(w.at)
	if err = errors.Join(err, failed); err != nil || w.wanted(now) || !isOpenToHolders(now) {
		_ = below.Close()
		if err == nil {
			err = errMoved // it is another one than before
		}
		return false, err
	}
	w.is = identityOf(here)
	if len(w.above) < keptOpen {
		w.folder = w.at
	} else {
		_ = w.at.Close()
	}
	w.above = append(w.above, w.level)
	w.at, w.level = below, level{}
	return true, nil
}

// goUp goes back to the folder above, where it came from.
func (w *walk) goUp() error {
	last := len(w.above) - 1
	up := w.above[last].folder
	if up == nil {
		var err error
		if up, err = openFolder(w.at, ".."); isElsewhere(err) {
			return errMoved
		} else if err != nil {
			return err
		}
	}
	_ = w.at.Close()
	w.at, w.level, w.above = up, w.above[last], w.above[:last]
	w.folder = nil
	if s, err := statOf(up); err != nil || identityOf(s) != w.is {
		return errors.Join(errMoved, err)
	}
	return nil
}

// close closes what is open of the way.
func (w *walk) close() {
	_ = w.at.Close()
	for _, l := range w.above {
		if l.folder != nil {
			_ = l.folder.Close()
		}
	}
}
