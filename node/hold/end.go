package hold

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// proveWithin is how long the GPUs of a hold may take, once nothing runs there any more,
// until they are free: a driver takes a moment to take memory back.
const proveWithin = 60 * time.Second

// slack is how much more memory of a GPU may be in use than before a hold, in MiB: the
// driver's own share is not the same every time.
const slack = 64

// clearAgain is how soon what could not be cleared is cleared again.
const clearAgain = time.Minute

// End ends the holds of allocations that have ended, as the server names them. What it names
// no more is forgotten once it is clean, and cleared again until then. It returns at once:
// Changed receives when there is more to tell.
func (k *Keeper) End(ids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed := false
	for _, id := range ids {
		if !IsName(id) {
			continue
		}
		r, ok := k.book.Holds[id]
		if !ok {
			r = k.unknown(id)
			k.book.Holds[id] = r
		}
		if ok && r.Phase != open {
			continue
		}
		k.begin(id, r)
		changed = true
	}
	var over []string
	for id, r := range k.book.Holds {
		switch {
		case r.Phase != ended || !k.told[id] || slices.Contains(ids, id):
		case r.Problem == "":
			over = append(over, id)
		case k.Clock.Now().Sub(r.Cleared) >= clearAgain: // it was told, and is still there
			r.Phase, r.Problem, changed = ending, "", true
			delete(k.told, id)
			record := *r
			k.work.Go(func() { k.clear(id, record) })
		}
	}
	if k.forget(over) {
		changed = true
	}
	if changed {
		k.save()
	}
}

// begin begins the end of a hold.
func (k *Keeper) begin(id string, r *record) {
	r.Phase = ending
	delete(k.leases.ends, id)
	began, record := k.begins[id], *r
	k.work.Go(func() {
		if began != nil {
			began.Wait() // nothing is started after it
		}
		k.clearLater(due{id, record})
	})
}

// EndNow ends an open hold before the server names it: what it was for is over, and what is left of that is killed, or
// its holder would have GPUs that nobody counts any more. The channel is closed once nothing is
// left there, and Changed receives then, too. One that is not open is left alone.
func (k *Keeper) EndNow(id string) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	done := make(chan struct{})
	r := k.book.Holds[id]
	if r == nil || r.Phase != open {
		close(done)
		k.tell()
		return done
	}
	k.ends[id], r.Done = done, true
	k.begin(id, r)
	k.save()
	return done
}

// noteEnd tells whoever waits that nothing is left of a hold.
func noteEnd(ends map[string]chan struct{}, id string) {
	if done := ends[id]; done != nil {
		close(done)
		delete(ends, id)
	}
}

// forget forgets holds, but not that they are over.
func (k *Keeper) forget(over []string) bool {
	if len(over) == 0 {
		return false
	}
	if err := k.over.add(over, k.Clock.Now()); err != nil {
		k.Log.Error("holds that are over cannot be forgotten", "error", err)
		return false
	}
	for _, id := range over {
		delete(k.book.Holds, id)
		delete(k.begins, id)
		delete(k.told, id)
	}
	return true
}

// EndAll ends all holds: the node is over for its control plane. It returns when nothing runs
// there any more.
func (k *Keeper) EndAll() {
	k.End(k.List())
	k.work.Wait()
}

// Resume goes on with what an earlier daemon was ending.
func (k *Keeper) Resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, r := range k.book.Holds {
		if record := *r; r.Phase == ending {
			k.work.Go(func() { k.clear(id, record) })
		}
	}
}

// unknown is the record of a hold of which the book knows nothing: all that can be said of
// it is what its folder says.
func (k *Keeper) unknown(id string) *record {
	r := &record{Home: filepath.Join(k.Dir, id), OpenedAt: k.Clock.Now()}
	if info, err := os.Stat(r.Home); err == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			r.UID, r.GID, r.OwnUser = s.Uid, s.Gid, isHolder(s.Uid)
		}
	}
	if k.runtime.Name != "" {
		r.Containers = &k.runtime
	}
	if k.cgroups != "" && r.OwnUser {
		r.Cgroup = cgroupOf(k.cgroups, id, r.UID)
	}
	return r
}

// save writes the book, as far as this process needs it. That it cannot is told by the next hold that is opened: an end
// is only repeated.
func (k *Keeper) save() {
	if err := k.book.note(k.Book); err != nil {
		k.Log.Error("what is known of holds cannot be written", "error", err)
	}
}

// clear ends what runs in a place, and removes what is left.
func (k *Keeper) clear(id string, r record) {
	from := k.Clock.Now()
	k.Log.Info("ending a hold", "allocation", id, "place", r.describe())
	s := k.scopeOf(id, r)
	grace := k.Grace
	if r.Done {
		grace = 0
	}
	count, err := s.endProcesses(grace)
	if err == nil && r.OwnUser { // a process of the user could signal the thread that clears
		err = clearKeyrings(r.UID)
	}
	if r.Containers != nil {
		err = errors.Join(err, r.Containers.RemoveOf(id))
	}
	removed, failed := s.removeLeftovers() // also where a process stays
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.book.hasLeft(s.left, k.again, id) && failed == nil {
		k.mu.Unlock()
		var n int
		s = k.scopeOf(id, r)
		n, failed = s.removeLeftovers()
		removed += n
		k.mu.Lock()
	}
	err = errors.Join(err, failed)
	noteEnd(k.ends, id)
	kept := k.book.Holds[id]
	if kept == nil {
		return
	}
	kept.Phase, kept.Cleared, kept.Scrubbed = cleared, k.Clock.Now(), false
	kept.Proof = fmt.Sprintf("%s ended, %s removed in %s", counted(count, "process", "processes"),
		counted(removed, "file", "files"), kept.Cleared.Sub(from).Round(time.Millisecond)) + describeLeft(s.left)
	if !r.OwnUser {
		kept.Proof += " (outside of its folder, none can be told from others')"
	}
	if err != nil {
		kept.Phase, kept.Problem = ended, clip(err.Error())
	}
	k.save()
	k.tell()
}

// Look reads back from a look at the GPUs, begun at a time, whether those of holds that have
// ended are free, and remembers what is in use of the others before a hold begins.
func (k *Keeper) Look(look contract.NodeLook, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looked = true
	changed := false
	for id, r := range k.book.Holds {
		if r.Phase != cleared || at.Before(r.Cleared) || k.scrubs[id] != nil {
			continue
		}
		said, busy := k.readBack(look, r)
		switch {
		case busy == "" && k.scrub(id, r, look): // it is read back again
		case busy == "":
			r.Phase, r.Proof, changed = ended, clip(r.Proof+"; "+said), true
		case at.Sub(r.Cleared) > proveWithin:
			r.Phase, r.Problem, changed = ended, clip(busy), true
		}
	}
	k.count = max(k.count, len(look.GPUs))
	clear(k.gpus)
	for _, g := range look.GPUs {
		if g.Minor != nil {
			k.opens[g.UUID] = deviceNumbers{gpu: *g.Minor, divided: g.Parent != "", capabilities: g.Capabilities}
		}
		if g.MemoryUsedMiB != nil && look.Source != "simulated" {
			k.gpus[g.UUID] = *g.MemoryUsedMiB
		}
	}
	if changed {
		k.save()
		k.tell()
	}
}

// Cleaned is what there is to tell of holds that have ended.
func (k *Keeper) Cleaned() []contract.Cleaned {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []contract.Cleaned
	for id, r := range k.book.Holds {
		if r.Phase == ended {
			k.told[id] = true
			all = append(all, contract.Cleaned{AllocationID: id, Problem: r.Problem, Proof: r.proof()})
		}
	}
	slices.SortFunc(all, func(a, b contract.Cleaned) int { return strings.Compare(a.AllocationID, b.AllocationID) })
	return all
}

// proof is what shows that nothing of a hold is left.
func (r *record) proof() string {
	if !r.Lapsed {
		return r.Proof
	}
	return clip("the node ended it by itself, as its lease was over; " + r.Proof)
}

// AwaitsLook reports whether a look at the GPUs is all that a hold's end waits for.
func (k *Keeper) AwaitsLook() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, r := range k.book.Holds {
		if r.Phase == cleared && k.scrubs[id] == nil {
			return true
		}
	}
	return false
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// clip bounds what is told, as the contract does.
func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), 300)], "") }
