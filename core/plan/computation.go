package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// computation is one run of Compute.
type computation struct {
	Snapshot
	policy   Policy
	now      time.Time
	lead     time.Duration
	boot50   time.Duration
	boot95   time.Duration
	places   *places
	bySlot   []*node.Node // the node that occupies each slot, also of those that the pool lost
	wanted   []bool       // slots that must have a node, or keep it
	held     []bool       // slots on whose node somebody works
	byStart  []*reservation.Reservation
	byAge    []*allocation.Allocation
	byID     map[string]*reservation.Reservation // made when it is first needed
	shifted  map[string]bool                     // moved to make room for others
	inUse    map[string]int                      // GPUs in somebody's hands, by node
	readied  int                                 // ready nodes
	creating int                                 // nodes asked for and not ready, with those of this run
	created  int                                 // nodes asked for by this run
	removed  int                                 // idle nodes given up by this run
	watched  float64                             // hours of demand that were watched
	lull     time.Duration                       // until the next promise that no node waits for; 0 is none
	actions  []Action
	next     time.Time
}

func newComputation(s Snapshot, p Policy, now time.Time) *computation {
	c := &computation{Snapshot: s, policy: p, now: now, boot50: s.Boot.P50(), boot95: s.Boot.P95(), inUse: map[string]int{}, shifted: map[string]bool{}}
	c.lead, c.watched = c.boot95+p.Guard, s.Arrivals.Watched()
	c.places = newPlaces(s)
	c.index()
	// Whoever waits is served first, then whoever starts first.
	c.byStart = make([]*reservation.Reservation, len(s.Reservations))
	for i := range s.Reservations {
		c.byStart[i] = &s.Reservations[i]
	}
	slices.SortFunc(c.byStart, func(a, b *reservation.Reservation) int {
		return cmp.Or(a.Window.Start.Compare(b.Window.Start), cmp.Compare(a.ID, b.ID))
	})
	c.byAge = make([]*allocation.Allocation, len(s.Allocations))
	for i := range s.Allocations {
		c.byAge[i] = &s.Allocations[i]
	}
	slices.SortFunc(c.byAge, func(a, b *allocation.Allocation) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), cmp.Compare(a.ID, b.ID))
	})
	return c
}

// index lays out what is asked for by slot. Slots that the pool no longer has
// may still have nodes and bookings.
func (c *computation) index() {
	slots := c.Pool.MaxNodes
	for i := range c.Nodes {
		slots = max(slots, c.Nodes[i].Slot+1)
	}
	for i := range c.Reservations {
		slots = max(slots, highest(c.Reservations[i].Slots)+1)
	}
	for i := range c.Allocations {
		slots = max(slots, highest(c.Allocations[i].Slots)+1)
	}
	c.bySlot, c.wanted, c.held = make([]*node.Node, slots), make([]bool, slots), make([]bool, slots)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		c.bySlot[n.Slot] = n
		if n.Coming() {
			c.creating++
		}
		if n.State() == node.Ready {
			c.readied++
		}
	}
	for _, a := range c.Allocations {
		if a.State() != allocation.Active {
			continue
		}
		for _, h := range a.Devices {
			c.inUse[h.NodeID]++
		}
	}
}

func highest(slots []int) int {
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

// at asks to be run again at t, if that is still to come.
func (c *computation) at(t time.Time) {
	if t.After(c.now) && (c.next.IsZero() || t.Before(c.next)) {
		c.next = t
	}
}

// reached reports whether t has come; if not, it asks to be run again then.
func (c *computation) reached(t time.Time) bool {
	c.at(t)
	return !t.After(c.now)
}

// keep marks slots whose nodes stay for now. What ends in this round keeps its
// nodes too: they are idle from the moment that the end is committed, not from
// when they were last idle before.
func (c *computation) keep(slots []int) {
	for _, slot := range slots {
		c.wanted[slot] = true
	}
}

// want marks slots as needed and asks for the nodes they lack, as far as the
// provider and the caps allow.
func (c *computation) want(slots []int, because string) {
	for _, slot := range slots {
		if !c.wanted[slot] && c.slotStanding(slot) == missing {
			c.create(slot, because)
		}
		c.wanted[slot] = true
	}
}

func (c *computation) create(slot int, because string) bool {
	s, length := c.Supply, c.policy.CreateWindow
	c.at(s.BlockedUntil)
	f := Facts{
		For: because, Standing: c.slotStanding(slot).String(), Coming: c.creating, Breaker: s.Breaker(c.policy.BreakAfter, c.now),
		BlockedUntil: s.BlockedUntil, Recent: s.Created.Sum(length, c.now) + c.created, Cap: c.policy.creates(c.Pool.MaxNodes),
		Odds: s.Odds(c.now), Failures: s.Failures, Boot50: c.boot50, Lead: c.boot95, Guard: c.policy.Guard,
	}
	if f.Recent >= f.Cap {
		c.at(c.now.Add(length / 10))
	}
	if !c.judge(Action{Kind: BootNode, Slot: slot, Facts: f}) {
		return false
	}
	c.creating++
	c.created++
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
