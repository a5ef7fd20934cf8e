package hold

import (
	"time"

	"github.com/forewarm/forewarm/contract"
)

// LeaseGrace is how long after the end of a lease, as it was told last, the node ends the work by itself while it
// cannot hear whether the lease was extended. It is long enough for a server to be started anew, and short enough for
// the work to have ended before the control plane gives up waiting for the proof of it.
const LeaseGrace = time.Minute

// savedSlack is how far what the book says of a lease may be from what was told last: to write down each second that
// an answer was on its way would cost a write for each report.
const savedSlack = 5 * time.Second

// lease is the end of a hold's lease as the book has it. It is counted from the boot of the machine, as the
// clock by which another daemon begins may be another one.
type lease struct {
	BootID string `json:"boot_id"`
	Ends   int64  `json:"ends"` // seconds after the machine booted
}

// leases are when what is known of the leases of open holds ends, by allocation.
type leases struct {
	bootID string
	booted time.Time
	ends   map[string]time.Time
}

// timeOf is when a lease that was written down ends; false: it is of another boot, of which nothing runs any more.
func (l *leases) timeOf(saved *lease) (time.Time, bool) {
	if saved == nil || saved.BootID != l.bootID {
		return time.Time{}, false
	}
	return time.Unix(l.booted.Unix()+saved.Ends, 0).UTC(), true
}

// keep remembers until when the work of a hold may be here, and reports whether the book has to say it, too.
func (l *leases) keep(id string, r *record, ends time.Time) (changed bool) {
	l.ends[id] = ends
	if saved, ok := l.timeOf(r.Lease); ok && ends.Sub(saved).Abs() <= savedSlack {
		return false
	}
	r.Lease = &lease{BootID: l.bootID, Ends: ends.Unix() - l.booted.Unix()}
	return true
}

// resume reads the leases of holds from the book, and has what an earlier daemon has to clean be looked at from now on:
// by its clock that may be in the future.
func (l *leases) resume(b book, now time.Time) {
	for id, r := range b.Holds {
		if ends, ok := l.timeOf(r.Lease); ok && r.Phase == open {
			l.ends[id] = ends
		}
		if r.Phase != open {
			r.Cleared = now
		}
	}
}

// HearLeases takes what the control plane said, at a time or soon after it, of the leases of the holds that were listed
// to it. Of those that it did not name nothing is known any more: they end when it says so, and not before.
func (k *Keeper) HearLeases(listed []string, said []contract.Lease, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := map[string]time.Duration{}
	for _, l := range said {
		left[l.AllocationID] = time.Duration(l.LeftSeconds) * time.Second
	}
	changed := false
	for _, id := range listed {
		r := k.book.Holds[id]
		if r == nil || r.Phase != open {
			continue
		}
		if goesOn, named := left[id]; named {
			changed = k.leases.keep(id, r, at.Add(goesOn)) || changed
			continue
		}
		changed = changed || r.Lease != nil
		delete(k.leases.ends, id)
		r.Lease = nil
	}
	if changed {
		k.save()
	}
}

// LeaseEnds returns when the first of the known leases of holds that are open ends, or ended; zero: none is known.
func (k *Keeper) LeaseEnds() (first time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, ends := range k.leases.ends {
		if first.IsZero() || ends.Before(first) {
			first = ends
		}
	}
	return first
}

// EndLapsed ends the holds whose leases have been over for LeaseGrace, where the control plane has been asked in vain
// for as long, since a time: what it knows of them may be more, but it offers their GPUs to others before long.
func (k *Keeper) EndLapsed(now, unheard time.Time) {
	if now.Sub(unheard) < LeaseGrace {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	changed := false
	for id, ends := range k.leases.ends {
		r := k.book.Holds[id]
		if r == nil || r.Phase != open {
			delete(k.leases.ends, id)
			continue
		}
		if now.Sub(ends) < LeaseGrace {
			continue
		}
		k.Log.Warn("the control plane cannot be heard, and a lease is over: its hold is ended", "allocation", id)
		delete(k.leases.ends, id)
		r.Lapsed, changed = true, true
		k.begin(id, r)
	}
	if changed {
		k.save()
	}
}

// Lapsed returns the allocations whose holds the node has ended by itself, as EndLapsed does, until they are forgotten.
func (k *Keeper) Lapsed() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for id, r := range k.book.Holds {
		if r.Lapsed {
			all = append(all, id)
		}
	}
	return all
}
