package plan

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/priority"
	"github.com/forewarm/forewarm/core/reservation"
)

// computation is one run of Compute.
type computation struct {
	Snapshot
	policy         Policy
	now            time.Time
	lead           time.Duration
	boot50         time.Duration
	boot95         time.Duration
	keepUntil      time.Time // the nodes of promises that begin until then are kept
	places         *places
	bySlot         []*node.Node               // the node that occupies each slot, also of those that the pool lost
	wanted         []bool                     // slots that must have a node, or keep it
	held           []bool                     // slots on whose node somebody works
	near           []*reservation.Reservation // those that something may be done for now, in the order of serving
	oldestRequest  time.Time                  // when the first node that is coming was asked for; zero is never
	firstUse       []time.Time                // of each slot, when its first live booking begins; zero is never
	byAge          []*allocation.Allocation   // the first to be served first
	nearIDs        map[string]bool            // of near; made when it is first needed
	shifted        map[string]bool            // moved to make room for others
	inUse          map[string]int             // GPUs in somebody's hands, by node
	readyCount     int                        // ready nodes
	comingCount    int                        // nodes asked for and not ready, with those of this run
	requestedCount int                        // nodes asked for by this run
	unservedCount  int                        // of them, those that nobody waits for
	idleNodes      []*node.Node               // that nothing needs or waits for
	usableCount    int                        // nodes that are ready or on their way
	removedCount   int                        // idle nodes given up by this run
	withheld       []Withheld                 // nodes that are needed and may not be asked for yet
	capped         cappedQueue                // when those that the cap holds back may be
	requestTimes   map[int]time.Time          // when the nodes that are needed are asked for, by slot
	watchedHours   float64                    // hours of demand that were watched
	nextUncovered  time.Time                  // the start of the next promise that no node waits for; zero is none
	actions        []Action
	next           time.Time
}

func newComputation(s Snapshot, p Policy, now time.Time) *computation {
	c := &computation{Snapshot: s, policy: p, now: now, boot50: s.Boot.P50(), boot95: s.Boot.P95(),
		inUse: map[string]int{}, shifted: map[string]bool{}}
	c.Supply.Created = s.Unserved(now)
	c.lead, c.watchedHours = c.boot95+p.Guard, s.Arrivals.Watched()
	c.keepUntil = now.Add(c.lead + c.boot50)
	c.places = newPlaces(s)
	c.indexSlots()
	c.sortReservations()
	c.byAge = make([]*allocation.Allocation, len(s.Allocations))
	for i := range s.Allocations {
		c.byAge[i] = &s.Allocations[i]
	}
	slices.SortFunc(c.byAge, func(a, b *allocation.Allocation) int {
		return priority.ServeByArrival(allocationClaimant(a), allocationClaimant(b))
	})
	for _, a := range c.byAge {
		c.noteUse(a.Slots, a.Window)
	}
	for _, x := range s.Cleaning { // whoever waits is served then
		c.wakeAt(x.Next(s.Pool.Timers.Cleaning))
	}
	return c
}

// indexSlots lays out what is asked for by slot. Slots that the pool no longer has
// may still have nodes and bookings.
func (c *computation) indexSlots() {
	slots := c.Pool.MaxNodes
	for i := range c.Nodes {
		slots = max(slots, c.Nodes[i].Slot+1)
	}
	for i := range c.Allocations {
		slots = max(slots, highestSlot(c.Allocations[i].Slots)+1)
	}
	c.ensureSlots(slots)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		c.bySlot[n.Slot] = n
		if n.Coming() {
			c.comingCount++
			c.oldestRequest = earlier(c.oldestRequest, n.RequestedAt)
		}
		if n.State() == node.Ready {
			c.readyCount++
		}
	}
	for _, a := range c.Allocations {
		if !a.Holds() && !a.Observed() {
			continue
		}
		for _, slot := range a.Slots {
			c.held[slot] = true
		}
		for _, h := range a.Devices {
			c.inUse[h.NodeID]++
		}
	}
}

// sortReservations sorts out the reservations: most are promises whose time is far off, for
// which nothing is to be done but to wake up for them.
func (c *computation) sortReservations() {
	outside := map[string]bool{}
	for _, b := range c.places.Outside() {
		outside[b.ID] = true
	}
	for i := range c.Reservations {
		r := &c.Reservations[i]
		paused := c.isPaused(r)
		if !paused && c.isDistant(r) && (len(outside) == 0 || !outside[r.ID]) {
			c.noteDistant(r)
			continue
		}
		c.near = append(c.near, r)
		c.ensureSlots(highestSlot(r.Slots) + 1)
		if r.Placed() && !paused {
			c.noteUse(r.Slots, r.Window)
		}
	}
	slices.SortFunc(c.near, func(a, b *reservation.Reservation) int {
		return priority.ServeByStart(reservationClaimant(c, a), reservationClaimant(c, b))
	})
}

// isDistant reports whether nothing is to be done for a promise yet: neither its own
// nodes nor idle ones that it could take over are decided about.
func (c *computation) isDistant(r *reservation.Reservation) bool {
	return r.State() == reservation.Booked && !r.Degraded && r.Window.Start.After(c.keepUntil)
}

// keepFrom is when nodes begin to be kept for a promise.
func (c *computation) keepFrom(r *reservation.Reservation) time.Time {
	return r.Window.Start.Add(-c.lead - c.boot50)
}

// KeepAhead returns how long before its start nodes begin to be kept for a promise of
// the pool, whichever source it asks for them.
func KeepAhead(pool *capacity.Pool, l *learned.Learned, p Policy) time.Duration {
	var longest time.Duration
	for _, source := range pool.Offerings() {
		boot := l.Of(*pool, source).Boot
		longest = max(longest, Lead(boot, p)+boot.P50())
	}
	return longest
}

// LookAt returns when a pool has to be planned because of a new promise, if nothing
// else happens before. That is at once if anything may depend on it by now, whether an
// idle node is worth keeping included; otherwise when nodes begin to be kept for it,
// which is KeepAhead of its start. One thing is left to the next look: an idle node that
// waited for another promise, which the new one leaves no room on it, is given up then.
func LookAt(r *reservation.Reservation, timers capacity.Timers, keepAhead time.Duration, now time.Time) time.Time {
	if r.State() != reservation.Booked || r.Degraded || r.Window.Start.Sub(now) <= timers.IdleRelease {
		return now
	}
	return calendar.Later(r.Window.Start.Add(-keepAhead), now)
}

// noteDistant notes what a promise that is far off changes, if it is nearer than
// those before.
func (c *computation) noteDistant(r *reservation.Reservation) {
	nearest := c.nextUncovered.IsZero() || r.Window.Start.Before(c.nextUncovered)
	if !nearest && !c.next.IsZero() && !c.keepFrom(r).Before(c.next) {
		return
	}
	c.wakeAt(r.Window.Start.Add(-c.lead))
	c.noteUse(r.Slots, r.Window)
	if nearest && slices.ContainsFunc(r.Slots, func(slot int) bool { return c.slotReadiness(slot) < coming }) {
		c.nextUncovered = r.Window.Start
	}
}

// noteUse notes that slots are used during an interval.
func (c *computation) noteUse(slots []int, iv calendar.Interval) {
	if !iv.End.After(c.now) {
		return
	}
	for _, slot := range slots {
		c.firstUse[slot] = earlier(c.firstUse[slot], iv.Start)
	}
}

// ensureSlots makes sure that so many slots are known.
func (c *computation) ensureSlots(slots int) {
	if more := slots - len(c.bySlot); more > 0 {
		c.bySlot, c.firstUse = append(c.bySlot, make([]*node.Node, more)...),
			append(c.firstUse, make([]time.Time, more)...)
		c.wanted, c.held = append(c.wanted, make([]bool, more)...), append(c.held, make([]bool, more)...)
	}
}

func highestSlot(slots []int) int {
	top := -1
	for _, slot := range slots {
		top = max(top, slot)
	}
	return top
}

// judge takes the action if its facts say so.
func (c *computation) judge(a Action) bool {
	a.Facts.At = c.now
	does, reason := Judge(a.Kind, a.Facts)
	if does {
		a.Reason = reason
		c.actions = append(c.actions, a)
	}
	return does
}

// wakeAt asks to be run again at t, if that is still to come.
func (c *computation) wakeAt(t time.Time) {
	if t.After(c.now) && (c.next.IsZero() || t.Before(c.next)) {
		c.next = t
	}
}

// hasCome reports whether t has come; if not, it asks to be run again then.
func (c *computation) hasCome(t time.Time) bool {
	c.wakeAt(t)
	return !t.After(c.now)
}

// keepNodes marks slots whose nodes stay for now. What ends in this round keeps its
// nodes too: they are idle from the moment that the end is committed, not from
// when they were last idle before.
func (c *computation) keepNodes(slots []int) {
	for _, slot := range slots {
		c.wanted[slot] = true
	}
}

// requireNodes marks slots as needed and asks for the nodes they lack, as far as the
// provider and the caps allow.
func (c *computation) requireNodes(slots []int, because string) {
	for _, slot := range slots {
		if !c.wanted[slot] && c.slotReadiness(slot) == missing {
			c.requestNode(slot, because)
		}
		c.wanted[slot] = true
	}
}

// earlier is the first of two times, of which the zero one is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
