package hold

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// mostLooked is how many entries of folders of one holder who is still here a walk looks at: nobody's end may take
// longer because of what another one has there.
var mostLooked = 200_000 //nolint:gochecknoglobals // tests have less

// errTooMany says that a holder who is still here has more than a walk looks at.
var errTooMany = errors.New("a holder has too many files")

// yard is the outermost folder of a holder who is still here, or one that was kept for others, with all that is in it.
// Whoever is there can move its folders as long as somebody looks through it, and nobody else is to answer for that.
type yard struct {
	owner uint32 // keptGroup: it was kept for others
	// above, waiting and found are the walk's in the folder that it is in.
	above   int
	waiting int
	found   bool
}

// ownerOf returns in whose yard a folder is, if it is not in one of a holder's already.
func (w *walk) ownerOf(s unix.Stat_t) (owner uint32, begins bool) {
	last := len(w.yards) - 1
	switch {
	case last >= 0 && w.yards[last].owner != keptGroup:
		return 0, false
	case isHolder(s.Uid) && !w.wanted(s):
		return s.Uid, true
	}
	return keptGroup, last < 0 && isKept(s)
}

// charge counts an entry for a holder who is still here, and reports whether it is to be looked at. What is in folders
// that were kept counts for nobody: there is no end that would look at the rest.
func (w *walk) charge(owner uint32) bool {
	if owner == keptGroup {
		return true
	}
	if w.looked[owner] >= mostLooked {
		w.left[owner] = true
		return false
	}
	w.looked[owner]++
	return true
}

// chargeYard counts an entry for whoever has the yard that the walk is in.
func (w *walk) chargeYard() bool {
	last := len(w.yards) - 1
	return last < 0 || w.charge(w.yards[last].owner)
}

// isToLeave reports whether a yard is left as it is because of an error.
func (w *walk) isToLeave(err error) bool {
	return len(w.yards) > 0 && (errors.Is(err, errMoved) || errors.Is(err, errTooMany))
}

// leaveYard goes back to the folder in which the yard is, which is still open. What it found there does not have
// anybody look again.
func (w *walk) leaveYard() {
	last := len(w.yards) - 1
	y := w.yards[last]
	w.yards, w.left[y.owner] = w.yards[:last], true
	for len(w.above) > y.above {
		_ = w.at.Close()
		top := len(w.above) - 1
		for ; top > y.above && w.above[top].folder == nil; top-- {
		}
		w.at, w.level, w.above = w.above[top].folder, w.above[top], w.above[:top]
		w.folder = nil
	}
	w.total, w.found = y.waiting, y.found
}

// hasLeft reports whether the ends of some holds, which are over now, are to look once more, as they did not see all in
// the yards of some users. What is left in a yard is for the end of whoever has it, which looks for all that is over as
// it begins. So one that has begun is told to look again; where it is over, these look again, as those that were told.
func (b *book) hasLeft(left map[uint32]bool, told map[string]bool, ids ...string) (again bool) {
	ends := map[uint32]string{}
	for id, r := range b.Holds {
		switch {
		case r.Phase == open:
			ends[r.UID] = ""
		case r.Phase == ending && !slices.Contains(ids, id):
			ends[r.UID] = id
		}
	}
	for uid := range left {
		id, toCome := ends[uid]
		switch {
		case !toCome && b.handedOut(uid):
			again = true
		case id != "":
			told[id] = true
		}
	}
	for _, id := range ids {
		again = again || told[id]
		delete(told, id)
	}
	return again
}

// describeLeft says in whose yards not everything was seen.
func describeLeft(left map[uint32]bool) (said string) {
	users := slices.Sorted(maps.Keys(left))
	if n := len(users) - 1; n >= 0 && users[n] == keptGroup {
		users, said = users[:n], "; folders that others have moved all the time were left for the next end"
	}
	switch len(users) {
	case 0:
		return said
	case 1:
		return fmt.Sprintf("; folders of user %d were left for the end of its hold", users[0]) + said
	}
	return fmt.Sprintf("; folders of users %d to %d (%d) were left for the ends of their holds", users[0],
		users[len(users)-1], len(users)) + said
}
