// Package allocation is the life of GPUs that somebody holds now: requested,
// active under a lease, released.
package allocation

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/statemachine"
)

// State is where an allocation is in its life.
type State string

// The states of an allocation.
const (
	Pending   State = "pending"   // has a place; waits for its nodes
	Active    State = "active"    // holds its GPUs
	Releasing State = "releasing" // is giving its GPUs back
	Released  State = "released"  // ended by its holder
	Failed    State = "failed"    // ended by the loss of a node
	Expired   State = "expired"   // ended by its lease
	Cancelled State = "cancelled" // ended before it held anything
)

// Event moves an allocation from one state to another.
type Event string

// The events of an allocation.
const (
	Activate Event = "activate"
	Release  Event = "release"
	Finish   Event = "finish" // the GPUs are free again
	Fail     Event = "fail"
	Expire   Event = "expire"
	Cancel   Event = "cancel"
)

// Machine is the transition table of an allocation.
var Machine = statemachine.Table[State, Event]{
	Name:    "allocation",
	Initial: []State{Pending},
	States:  []State{Pending, Active, Releasing, Released, Failed, Expired, Cancelled},
	Transitions: []statemachine.Transition[State, Event]{
		{From: Pending, Event: Activate, To: Active},
		{From: Pending, Event: Cancel, To: Cancelled},
		{From: Pending, Event: Expire, To: Expired},
		{From: Pending, Event: Fail, To: Failed},
		{From: Active, Event: Release, To: Releasing},
		{From: Active, Event: Fail, To: Failed},
		{From: Active, Event: Expire, To: Expired},
		{From: Releasing, Event: Finish, To: Released},
		{From: Releasing, Event: Fail, To: Failed},
	},
}

// ZeroWait is the longest wait that counts as none.
const ZeroWait = 5 * time.Second

// Allocation is GPUs held by somebody, at one moment. Its state changes only
// through Apply.
type Allocation struct {
	ID             string
	OrganizationID string
	PoolID         string
	Name           string
	Workload       capacity.Workload // New makes it online when it is empty
	HeldBy         string            // key that asked for it
	UserID         string            // person whose key it is; empty: none
	JobID          string            // that it was made for; empty: none
	Apart          []string          // from whom that stays apart: jobs of the organization by id, array or name
	Shape          capacity.Shape
	Slots          []int
	Devices        []Held            // what it holds, from activation on
	Reservations   []string          // what it claimed
	Opened         []string          // the nodes where work of its holder was begun by their daemons
	Lease          time.Duration     // asked for; counts from activation
	Window         calendar.Interval // its entry in the calendar
	Reason         string            // why it is in its state, a code
	// Cost is what the lease costs if it is held to its end, at the pool's price
	// when the lease was last set; once ended, what was really held.
	Cost money.MicroUSD

	RequestedAt time.Time // first, by whoever then waited for room
	ActiveAt    time.Time
	LeaseUntil  time.Time // zero until active, and of observed work
	EndedAt     time.Time
	// IdleWarnedAt is when its holder was last warned that its GPUs are idle; zero: never.
	IdleWarnedAt time.Time
	Version      int

	// Work is what a cluster's scheduler placed, where the allocation was observed and
	// not asked for: see Observed.
	Work Work

	state State
}

// Held is one GPU in somebody's hands.
type Held struct {
	NodeID string
	UUID   string
}

// New returns a pending allocation, requested now unless it says since when.
func New(a Allocation, now time.Time) Allocation {
	a.state, a.Workload = Pending, cmp.Or(a.Workload, capacity.Online)
	if a.RequestedAt.IsZero() {
		a.RequestedAt = now
	}
	return a
}

// Restore returns a in a stored state. Only the store calls it.
func Restore(a Allocation, s State) (Allocation, error) {
	if !Machine.Known(s) {
		return a, fmt.Errorf("restoring allocation %s: unknown state %q", a.ID, s)
	}
	a.state = s
	return a, nil
}

// State returns where the allocation is in its life.
func (a Allocation) State() State { return a.state }

// Apply returns the allocation after the event, or a *statemachine.IllegalError. The
// receiver is not changed. reason is a short code that is stored and shown.
func (a Allocation) Apply(event Event, reason string, now time.Time) (Allocation, error) {
	to, err := Machine.Next(a.state, event)
	if err != nil {
		return a, err
	}
	a.state, a.Reason = to, reason
	if to == Active {
		a.ActiveAt = now
		if !a.Observed() {
			a.LeaseUntil = now.Add(a.Lease)
		}
	}
	if Machine.Terminal(to) {
		a.EndedAt = now
	}
	return a, nil
}

// Holds reports whether the allocation has GPUs: while it is active, and while what
// runs on them comes to its end.
func (a Allocation) Holds() bool { return a.state == Active || a.state == Releasing }

// Wait returns how long the holder waited for the GPUs, and false while it
// still waits or never got them.
func (a Allocation) Wait() (time.Duration, bool) {
	if a.ActiveAt.IsZero() {
		return 0, false
	}
	return a.ActiveAt.Sub(a.RequestedAt), true
}

// EnteredAt is when the allocation got its place in the calendar. Somebody who was refused before
// for want of room has waited longer, and gains nothing else by that.
func (a Allocation) EnteredAt() time.Time {
	if a.Observed() || a.RequestedAt.After(a.Window.Start) {
		return a.RequestedAt
	}
	return a.Window.Start
}

// Live reports whether anything can still happen to the allocation.
func (a Allocation) Live() bool { return !Machine.Terminal(a.state) }

// Booking is the allocation's entry in the pool's calendar.
func (a Allocation) Booking() calendar.Booking {
	return calendar.Booking{ID: a.ID, Interval: a.Window, Slots: a.Slots, GPUs: a.Shape.PerNode, Short: a.Shape.Short}
}

// Occupies makes an allocation a calendar.Occupant until it is over. Observed work
// takes no place from promises: it is where its scheduler put it, and nobody knows
// until when.
func (a *Allocation) Occupies(int) (calendar.Booking, bool) {
	return a.Booking(), a.Live() && !a.Observed()
}
