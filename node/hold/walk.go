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

// errMoved says that a folder was moved or removed while somebody looked through it.
var errMoved = errors.New("folders are moved all the time")

// outcome is what a walk came to.
type outcome struct {
	removed int
	found   bool            // something was wanted
	looked  map[uint32]int  // entries in the yards of each holder
	left    map[uint32]bool // those in whose yards it has not seen everything
}

// clearShared removes each wanted entry of a shared folder, as far as nothing of others is in it. It begins anew where
// folders are moved, until its time is over, but for those of holders who are still here.
func clearShared(ctx context.Context, dir string, wanted filter) (all outcome, err error) {
	for {
		top, err := os.Open(dir) //nolint:gosec // one of the machine's
		if errors.Is(err, fs.ErrNotExist) {
			return all, nil
		}
		if err == nil {
			w := walk{ctx: ctx, wanted: wanted, at: top, outcome: outcome{looked: map[uint32]int{},
				left: map[uint32]bool{}}}
			err = w.through()
			w.close()
			all.removed, all.found, all.left = all.removed+w.removed, all.found || w.found, w.left
		}
		if err != nil && (!errors.Is(err, errMoved) || ctx.Err() != nil) {
			return all, fmt.Errorf("looking through %s: %w", dir, err)
		}
		if err == nil {
			return all, nil
		}
	}
}

// walk is a way through a folder, which needs no more open files the deeper it goes.
type walk struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	wanted filter

	at    *os.File
	above []level
	level
	yards []yard // in which the way is, those that lie in another one last
	total int    // of the folders that wait, on all levels
	outcome
}

// level is a folder on the way.
type level struct {
	folder  *os.File // nil: it is opened again from the one below
	is      identity
	entered string   // which of its folders the way goes through
	waiting []string // the folders in it that wait for a look
}

// identity tells a folder from any other, wherever it is moved.
type identity struct{ device, inode uint64 }

func identityOf(s unix.Stat_t) identity { return identity{s.Dev, s.Ino} }

func (w *walk) through() error {
	for entered := true; ; {
		var err error
		switch {
		case entered:
			entered, err = false, w.look()
		case len(w.waiting) > 0:
			entered, err = w.goDown()
		case len(w.above) == 0:
			return nil
		default:
			err = w.goUp()
		}
		switch {
		case err == nil:
		case w.isToLeave(err):
			w.leaveYard()
		default:
			return err
		}
	}
}

// look removes what is wanted of the folder, and has those folders wait that are to be looked into. Wanted ones that
// are too many at a time are found by the next look.
func (w *walk) look() error {
	var failed error
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	err := eachName(ctx, w.at, func(name string) {
		if failed == nil && !w.chargeYard() {
			failed = errTooMany
		}
		if failed != nil {
			stop()
			return
		}
		failed = w.lookAt(name)
	})
	if w.total += len(w.waiting); failed != nil {
		return failed
	}
	if err == nil && w.total > mostWaiting {
		err = errors.New("it has too many folders")
	}
	return err
}

// lookAt looks at an entry of the folder.
func (w *walk) lookAt(name string) error {
	s, err := statIn(w.at, name)
	if isElsewhere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	wanted := w.wanted(s)
	w.found = w.found || wanted
	switch {
	case wanted && !isFolder(s):
		return w.remove(name)
	case wanted && w.total+len(w.waiting) >= mostWaiting/2:
	case isOpenToHolders(s):
		if owner, begins := w.ownerOf(s); !begins || w.charge(owner) {
			w.waiting = append(w.waiting, name)
		}
	}
	return nil
}

// remove removes an entry of the folder. What has become a folder since is found by the next look.
func (w *walk) remove(name string) error {
	err := unix.Unlinkat(int(w.at.Fd()), name, 0)
	switch {
	case err == nil:
		w.removed++
	case !isElsewhere(err) && !errors.Is(err, unix.EISDIR):
		return fmt.Errorf("%q cannot be removed: %w", name, err)
	}
	return nil
}

func isFolder(s unix.Stat_t) bool { return s.Mode&unix.S_IFMT == unix.S_IFDIR }

// isOpenToHolders reports whether a holder may have left something in there: in folders of others to which everybody
// may write, and in those of any holder, or kept after one, whoever may write to them now.
func isOpenToHolders(s unix.Stat_t) bool {
	return isFolder(s) && (s.Mode&0o002 != 0 || isHolder(s.Uid) || isHolder(s.Gid) || isKept(s))
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
	if err = errors.Join(err, failed); err != nil || !isOpenToHolders(now) {
		_ = below.Close()
		if err == nil {
			err = errMoved // it is another one than before
		}
		return false, err
	}
	w.is, w.entered = identityOf(here), name
	owner, begins := w.ownerOf(now)
	if begins {
		w.yards = append(w.yards, yard{owner, len(w.above), w.total, w.found})
	}
	if begins || len(w.above) < keptOpen {
		w.folder = w.at
	} else {
		_ = w.at.Close()
	}
	w.above = append(w.above, w.level)
	w.at, w.level = below, level{}
	return true, nil
}

// goUp goes back to the folder above, where it came from, and removes the one that it leaves, if that is to go.
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
	left := w.at
	defer func() { _ = left.Close() }()
	w.at, w.level, w.above = up, w.above[last], w.above[:last]
	w.folder = nil
	if s, err := statOf(up); err != nil || identityOf(s) != w.is {
		return errors.Join(errMoved, err)
	}
	err := w.leave(left)
	if in := len(w.yards) - 1; in >= 0 && w.yards[in].above == last && err == nil {
		w.yards = w.yards[:in]
	}
	return err
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
