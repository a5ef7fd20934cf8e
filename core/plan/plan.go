// Package plan decides what happens to a pool next: which reservations start
// warming, which nodes are made, handed over or removed, and who came too late.
//
// Compute looks at a snapshot and returns actions as values; the ledger commits
// them. It is run again after every change of the pool and at the moment it
// names itself, so it never needs to remember anything: an action that was lost
// is simply decided again.
package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// Snapshot is one pool at one moment: everything in it that is not over.
type Snapshot struct {
	Pool         gpu.Pool
	Boot         BootTimes
	BlockedUntil time.Time // no node is asked for before: the provider refused lately
	Nodes        []node.Node
	Reservations []reservation.Reservation
	Allocations  []allocation.Allocation
}

// Policy tunes the planner.
type Policy struct {
	Guard       time.Duration // added to the learned boot time
	BootTimeout time.Duration // a node that boots for longer than this and than five times its p95 is given up
}

// WithDefaults fills what is zero.
func (p Policy) WithDefaults() Policy {
	if p.Guard == 0 {
		p.Guard = time.Minute
	}
	if p.BootTimeout == 0 {
		p.BootTimeout = 15 * time.Minute
	}
	return p
}

// Kind names an action.
type Kind string

// The actions.
const (
	BootNode         Kind = "boot_node"           // make a node on Slot
	AbandonNode      Kind = "abandon_node"        // drop a node that was never asked for
	DrainNode        Kind = "drain_node"          // take no more work on it
	RetireNode       Kind = "retire_node"         // remove it
	WarmReservation  Kind = "warm_reservation"    // its lead time has come
	ReadyReservation Kind = "ready_reservation"   // all its nodes are ready
	UnreadyReserv    Kind = "unready_reservation" // a node under it was lost
	DegradeReserv    Kind = "degrade_reservation" // it will be late
	ExpireReserv     Kind = "expire_reservation"
	FailReservation  Kind = "fail_reservation"
	MoveReservation  Kind = "move_reservation" // to Slots
	RetryWaitlisted  Kind = "retry_waitlisted"
	ActivateAlloc    Kind = "activate_allocation"
	ExpireAllocation Kind = "expire_allocation"
	FailAllocation   Kind = "fail_allocation"
	MoveAllocation   Kind = "move_allocation" // to Slots
)

// Action is one decision. Subject is the id of what it is about, empty for
// BootNode.
type Action struct {
	Kind    Kind
	Subject string
	Slot    int
	Slots   []int
	Reason  string // a code
}

// Result is a plan: what to do now, and when to look again if nothing changes
// before. A zero Next means never.
type Result struct {
	Actions []Action
	Next    time.Time
}

// Compute plans the pool. Actions of one result never depend on each other; what
// becomes possible by them is found by computing again after they are committed.
func Compute(s Snapshot, p Policy, now time.Time) Result {
	c := newComputation(s, p.WithDefaults(), now)
	c.allocations()
	c.reservations()
	c.nodes()
	return Result{Actions: c.actions, Next: c.next}
}

// computation is one run of Compute.
type computation struct {
	Snapshot
	policy  Policy
	now     time.Time
	lead    time.Duration
	slots   *calendar.Slots
	bySlot  map[int]node.Node // the node that occupies each slot
	wanted  map[int]bool      // slots that must have a node, or keep it
	held    map[int]bool      // slots on whose node somebody works
	actions []Action
	next    time.Time
}

func newComputation(s Snapshot, p Policy, now time.Time) *computation {
	c := &computation{
		Snapshot: s, policy: p, now: now, lead: s.Boot.P95() + p.Guard,
		slots: calendar.NewSlots(s.Pool.MaxNodes, s.Pool.PerNode), bySlot: map[int]node.Node{},
		wanted: map[int]bool{}, held: map[int]bool{},
	}
	for _, n := range s.Nodes {
		c.bySlot[n.Slot] = n
	}
	for _, r := range s.Reservations {
		if r.Placed() {
			c.slots.Force(r.Booking())
		}
	}
	for _, a := range s.Allocations {
		c.slots.Force(a.Booking())
	}
	// Whoever waits is served first, then whoever starts first.
	c.Reservations = slices.Clone(s.Reservations)
	slices.SortFunc(c.Reservations, func(a, b reservation.Reservation) int {
		return cmp.Or(a.Window.Start.Compare(b.Window.Start), cmp.Compare(a.ID, b.ID))
	})
	c.Allocations = slices.Clone(s.Allocations)
	slices.SortFunc(c.Allocations, func(a, b allocation.Allocation) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt), cmp.Compare(a.ID, b.ID))
	})
	return c
}

func (c *computation) do(a Action) { c.actions = append(c.actions, a) }

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

// standing is how far the nodes of some slots are.
type standing int

const (
	missing standing = iota // a slot has no node
	stuck                   // a slot is taken by a node on its way out, or is not the pool's any more
	coming                  // every slot has a node, one is not ready yet
	ready                   // every slot has a ready node
)

func (c *computation) standing(slots []int) standing {
	worst := ready
	for _, slot := range slots {
		worst = min(worst, c.slotStanding(slot))
	}
	return worst
}

func (c *computation) slotStanding(slot int) standing {
	n, ok := c.bySlot[slot]
	switch {
	case !ok && slot >= c.Pool.MaxNodes:
		return stuck
	case !ok:
		return missing
	case n.State() == node.Ready:
		return ready
	case n.Coming():
		return coming
	default:
		return stuck
	}
}

// want marks slots as needed and asks for the nodes they lack.
func (c *computation) want(slots []int, reason string) {
	for _, slot := range slots {
		if !c.wanted[slot] && c.slotStanding(slot) == missing && c.reached(c.BlockedUntil) {
			c.do(Action{Kind: BootNode, Slot: slot, Reason: reason})
		}
		c.wanted[slot] = true
	}
}

// better looks for slots that serve a booking sooner than its own: ready nodes
// rather than booting ones, a free slot rather than one whose node is on its way
// out. What it finds is taken in the calendar for the rest of the run; it returns
// false, changing nothing, when moving gains nothing.
func (c *computation) better(b calendar.Booking, shape gpu.Shape) ([]int, bool) {
	if len(b.Slots) == 0 || c.standing(b.Slots) == ready {
		return nil, false
	}
	c.slots.Remove(b.ID)
	defer func() { c.slots.Force(b) }()
	window := b.Interval.From(c.now)
	found, ok := c.slots.Find(shape, window, func(slot int) int { return c.preference(slot, b.Slots) })
	if !ok || c.cost(found, b.Slots) >= c.cost(b.Slots, b.Slots) {
		return nil, false
	}
	b.Slots = found
	return found, true
}

// preference ranks a slot for a booking that now sits on own: the sooner usable
// the better, staying before moving.
func (c *computation) preference(slot int, own []int) int {
	stay := 1
	if slices.Contains(own, slot) {
		stay = 0
	}
	switch c.slotStanding(slot) {
	case ready:
		return stay
	case coming:
		return 2 + stay
	case missing:
		return 4 + stay
	default:
		return 8 + stay
	}
}

// cost adds up how far slots are from usable, without the bonus for staying.
func (c *computation) cost(slots, own []int) int {
	sum := 0
	for _, slot := range slots {
		sum += c.preference(slot, own) &^ 1
	}
	return sum
}
