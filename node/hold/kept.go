package hold

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// keptGroup is the group of folders that were kept after a hold, as others have files in them. Nobody is ever in it,
// and only root can give it, so that a folder's group tells that it goes once it is empty.
const keptGroup = lastUser

// isKept reports whether a folder was kept after a hold, for what others have in it.
func isKept(s unix.Stat_t) bool { return s.Uid == 0 && s.Gid == keptGroup }

// leave removes a folder of the one that the walk is in, after all that is in it was looked at. One that is wanted and
// has something of others is kept for them; one that was kept goes once it is empty.
func (w *walk) leave(f *os.File) error {
	s, err := statOf(f)
	if err != nil {
		return err
	}
	wanted := w.wanted(s)
	if !wanted && !isKept(s) {
		return nil
	}
	if now, err := statIn(w.at, w.entered); isElsewhere(err) || err == nil && identityOf(now) != identityOf(s) {
		if len(w.yards) > 0 {
			return errMoved // as may be each time that somebody looks
		}
		return nil // the next look finds it
	}
	err = unix.Unlinkat(int(w.at.Fd()), w.entered, unix.AT_REMOVEDIR)
	switch isFull := errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST); {
	case err == nil && wanted:
		w.removed++
	case isFull && wanted:
		err = keepFor(f, s)
	case !wanted || isElsewhere(err):
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%q cannot be removed: %w", w.entered, err)
	}
	return nil
}

// keepFor hands a folder, in which others have files, to root, and leaves its mode as it is: they go on with it, and
// nothing of whoever made it is there any more.
func keepFor(f *os.File, s unix.Stat_t) error {
	err := unix.Fchown(int(f.Fd()), 0, keptGroup)
	if errors.Is(err, unix.EINVAL) { // a user namespace may have no such group
		err = unix.Fchown(int(f.Fd()), 0, -1)
	}
	if err == nil {
		err = unix.Fchmod(int(f.Fd()), s.Mode&0o7777)
	}
	if err != nil {
		return fmt.Errorf("handing the folder to root, as others have files in it: %w", err)
	}
	return nil
}
