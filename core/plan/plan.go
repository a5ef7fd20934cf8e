// Package plan decides what happens to a pool next: which reservations start
// warming, which nodes are made, handed over or removed, and which were not
// claimed in time.
//
// Compute looks at a snapshot and returns actions as values; the ledger commits
// them. It is run again after every change of the pool and at the moment it
// names itself, so it never needs to remember anything: a lost action is simply
// decided again. What a pool has learned (package learned) comes in with the
// snapshot.
package plan

import (
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// Snapshot is one pool at one moment: everything in it that is not over.
type Snapshot struct {
	Pool capacity.Pool
	learned.Learned
	Billing      Billing
	Nodes        []node.Node
	Reservations []reservation.Reservation
	Allocations  []allocation.Allocation
	Ahead        []Ahead // in the order in which it is served

	// Slots is the calendar of what is placed in the pool. Compute puts it back as
	// it was before it returns; nil has it built from the bookings.
	Slots *calendar.Slots
	// Shares are the organizations' fair shares of the pool in use; who has less is
	// served from the waitlist first.
	Shares map[string]float64
	// Paused are the organizations whose speculative reservations are not warmed,
	// each until a time, the zero time being until further notice. The empty name
	// is all of them.
	Paused map[string]time.Time
	// Idle are the allocations whose GPUs are idle, as far as somebody looks at them now.
	Idle map[string]Idleness
	// Pinned are the allocations that keep their slots, whichever would be better.
	Pinned map[string]bool
}

// Billing is how the provider charges for a node besides its price: at least
// Minimum, and by whole Steps after it. Zero is by the second.
type Billing struct {
	Minimum, Step time.Duration
}

// prepaidTime returns how much more of a node that is billed for so long is paid for.
func (b Billing) prepaidTime(billed time.Duration) time.Duration {
	switch {
	case billed < b.Minimum:
		return b.Minimum - billed
	case b.Step <= 0:
		return 0
	default:
		return (b.Step - (billed-b.Minimum)%b.Step) % b.Step
	}
}

// Kind names an action.
type Kind string

// The actions.
const (
	BootNode           Kind = "boot_node"           // make a node on Slot
	AbandonNode        Kind = "abandon_node"        // drop a node that was never asked for
	DrainNode          Kind = "drain_node"          // take no more work on it
	RetireNode         Kind = "retire_node"         // remove it
	WarmReservation    Kind = "warm_reservation"    // its lead time has come
	ReadyReservation   Kind = "ready_reservation"   // all its nodes are ready
	UnreadyReservation Kind = "unready_reservation" // a node under it was lost, or is not held for it any more
	DegradeReservation Kind = "degrade_reservation" // it will be late, or has lost its place
	RestoreReservation Kind = "restore_reservation" // it has a place again
	ExpireReservation  Kind = "expire_reservation"
	FailReservation    Kind = "fail_reservation"
	MoveReservation    Kind = "move_reservation" // to Slots
	RetryWaitlisted    Kind = "retry_waitlisted"
	ActivateAllocation Kind = "activate_allocation"
	ExpireAllocation   Kind = "expire_allocation"
	FailAllocation     Kind = "fail_allocation"
	WarnIdle           Kind = "warn_idle"       // tell the holder of an allocation that its GPUs are idle
	ReclaimIdle        Kind = "reclaim_idle"    // end an allocation whose GPUs are idle
	MoveAllocation     Kind = "move_allocation" // to Slots
)

// Action is one decision. Subject is the id of what it is about, empty for
// BootNode. Judge(Kind, Facts) gives it again.
type Action struct {
	Kind    Kind
	Subject string
	Slot    int
	Slots   []int
	Reason  string // a code
	Facts   Facts
}

// Result is a plan: what to do now, and when to look again if nothing changes
// before. A zero Next means never. Withheld are nodes that are needed and may not
// be asked for now.
type Result struct {
	Actions  []Action
	Next     time.Time
	Withheld []Withheld
}

// Compute plans the pool. The actions of one result are committed together, in
// their order; what becomes possible by them is found by computing again after
// they are committed.
func Compute(s Snapshot, p Policy, now time.Time) Result {
	c := newComputation(s, p.WithDefaults(), now)
	c.planPool()
	c.places.restoreCalendar()
	return Result{Actions: c.actions, Next: c.next, Withheld: c.withheld}
}

func (c *computation) planPool() {
	planAllocations(c)
	planReservations(c)
	c.retryWaitlist()
	planAhead(c)
	planNodes(c)
}
