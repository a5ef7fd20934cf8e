package hold

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// gatherFor is how long an end waits for others, so that one look at all processes and at all shared
// folders is enough for them.
const gatherFor = 2 * time.Millisecond

// due is a hold that is to be cleared.
type due struct {
	id string
	record
}

// clearLater has a hold cleared together with those that end at the same time.
func (k *Keeper) clearLater(d due) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.due = append(k.due, d)
	if k.clearing {
		return
	}
	k.clearing = true
	k.work.Go(k.clearDue)
}

// clearDue clears what is due until nothing is. It is run once at a time.
func (k *Keeper) clearDue() {
	for {
		<-time.NewTimer(gatherFor).C
		k.mu.Lock()
		all := k.due
		k.due, k.clearing = nil, len(all) > 0
		k.mu.Unlock()
		if len(all) == 0 {
			return
		}
		k.clearTogether(all)
	}
}

// finding is what clearing a hold came to.
type finding struct {
	removed int
	err     error
}

// clearTogether clears holds of which nothing runs any more at once, and each of the others by itself, as that may
// take its time. So it is with all of them if what they left in shared folders cannot be removed: nobody is to
// answer for another one's.
func (k *Keeper) clearTogether(all []due) {
	from := k.Clock.Now()
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	quiet := endQuiet(all)
	found := map[string]finding{}
	for _, d := range quiet {
		err := clearKeyrings(d.UID)
		removed, failed := removeHome(ctx, d.Home)
		found[d.id] = finding{removed, errors.Join(err, failed)}
	}
	for shared, noted := 0, len(quiet) == 0; !noted; {
		s := k.sharedScope(quiet)
		n, err := s.removeShared(ctx)
		if shared += n; err != nil {
			clear(found)
			break
		}
		noted = k.noteCleared(found, shared, s.left, from)
	}
	for _, d := range all {
		if _, done := found[d.id]; !done {
			k.work.Go(func() { k.clear(d.id, d.record) })
		}
	}
}

// noteCleared notes what was found of holds that were cleared together, unless they are to look once more.
func (k *Keeper) noteCleared(found map[string]finding, shared int, left map[uint32]bool, from time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.book.hasLeft(left, k.again, slices.Collect(maps.Keys(found))...) {
		return false
	}
	k.Log.Info("ended holds with nothing left running", "holds", len(found), "files_in_shared_folders", shared)
	for id, f := range found {
		noteEnd(k.ends, id)
		kept := k.book.Holds[id]
		if kept == nil {
			continue
		}
		kept.Phase, kept.Cleared = cleared, k.Clock.Now()
		kept.Proof = fmt.Sprintf("0 processes ended, %s removed in %s", describeRemoved(f.removed, shared, len(found)),
			kept.Cleared.Sub(from).Round(time.Millisecond)) + describeLeft(left)
		if f.err != nil {
			kept.Phase, kept.Problem = ended, clip(f.err.Error())
		}
	}
	k.save()
	k.tell()
	return true
}

// describeRemoved says how many files were removed of one of some holds.
func describeRemoved(own, shared, holds int) string {
	if holds == 1 {
		return counted(own+shared, "file", "files")
	}
	return fmt.Sprintf("%s of its own and %d in shared folders of %d holds", counted(own, "file", "files"), shared, holds)
}

// endQuiet returns those of some holds of which nothing runs: the kernel has removed their cgroups, which it does of
// empty ones, and no process has their users. Holds without both, and those that may have containers, are not among
// them.
func endQuiet(all []due) (quiet []due) {
	for _, d := range all {
		alone := d.OwnUser && d.Containers == nil && d.Cgroup != ""
		if alone && isEmpty(d.Cgroup) && (scope{record: d.record}).removeCgroups() == nil {
			quiet = append(quiet, d)
		}
	}
	return slices.DeleteFunc(quiet, func(d due) bool { return !isIdle(d.UID) })
}

// isEmpty reports whether the kernel says that no process is in a cgroup, nor in one below it.
func isEmpty(cgroup string) bool {
	text, err := os.ReadFile(filepath.Join(cgroup, "cgroup.events")) //nolint:gosec // the kernel's file
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), "populated 0")
}

// isIdle reports whether the kernel knows of no process that was started with a user. One of a hold has that user as
// long as it is there: it may take no other one.
func isIdle(uid uint32) bool {
	_, err := unix.Getpriority(unix.PRIO_USER, int(uid))
	return errors.Is(err, unix.ESRCH)
}

// sharedScope is where what holds left in shared folders is found.
func (k *Keeper) sharedScope(all []due) scope {
	users := map[uint32]bool{}
	for _, d := range all {
		users[d.UID] = true
	}
	others := k.scopeOf(all[0].id, all[0].record)
	return scope{folders: others.folders, left: others.left,
		isOver: func(uid uint32) bool { return users[uid] || others.isOver(uid) }}
}
