// Package reservation is the life of a promise: GPUs of one pool over a window,
// made by a person, a schedule or an agent, warmed ahead of its start, and
// claimed, cancelled or left to expire.
package reservation

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/statemachine"
)

// State is where a reservation is in its life.
type State string

// The states of a reservation.
const (
	Booked     State = "booked"     // has a place in the calendar
	Waitlisted State = "waitlisted" // wants a place
	Warming    State = "warming"    // nodes are being made ready
	Ready      State = "ready"      // every node is ready and held
	Claimed    State = "claimed"    // an allocation took it over
	Cancelled  State = "cancelled"  // its owner, or a displacement, ended it
	Expired    State = "expired"    // nobody came
	Failed     State = "failed"     // it was never ready in its window
)

// Event moves a reservation from one state to another.
type Event string

// The events of a reservation.
const (
	Promote     Event = "promote" // a place was found
	Warm        Event = "warm"    // the lead time has come
	BecomeReady Event = "ready"   // every node is ready
	LoseNode    Event = "lose_node"
	Claim       Event = "claim"
	Cancel      Event = "cancel"
	Expire      Event = "expire"
	FailWindow  Event = "fail"
)

// Machine is the transition table of a reservation.
var Machine = statemachine.Table[State, Event]{
	Name:    "reservation",
	Initial: []State{Booked, Waitlisted},
	States:  []State{Booked, Waitlisted, Warming, Ready, Claimed, Cancelled, Expired, Failed},
	Transitions: []statemachine.Transition[State, Event]{
		{From: Waitlisted, Event: Promote, To: Booked},
		{From: Waitlisted, Event: Cancel, To: Cancelled},
		{From: Waitlisted, Event: Expire, To: Expired},
		{From: Booked, Event: Warm, To: Warming},
		{From: Booked, Event: Claim, To: Claimed},
		{From: Booked, Event: Cancel, To: Cancelled},
		{From: Booked, Event: Expire, To: Expired},
		{From: Booked, Event: FailWindow, To: Failed},
		{From: Warming, Event: BecomeReady, To: Ready},
		{From: Warming, Event: Claim, To: Claimed},
		{From: Warming, Event: Cancel, To: Cancelled},
		{From: Warming, Event: Expire, To: Expired},
		{From: Warming, Event: FailWindow, To: Failed},
		{From: Ready, Event: LoseNode, To: Warming},
		{From: Ready, Event: Claim, To: Claimed},
		{From: Ready, Event: Cancel, To: Cancelled},
		{From: Ready, Event: Expire, To: Expired},
	},
}

// Class says how hard a promise is.
type Class string

// The classes of a reservation.
const (
	Guaranteed  Class = "guaranteed"  // admitted against hard capacity
	Speculative Class = "speculative" // gives way to people and guaranteed reservations
)

// Origin says who made a reservation.
type Origin string

// The sources of a reservation.
const (
	FromPerson   Origin = "person"
	FromSchedule Origin = "schedule"
	FromAgent    Origin = "agent"
)

// Reservation is a promise at one moment. Its state changes only through Apply.
type Reservation struct {
	ID             string
	OrganizationID string
	PoolID         string
	Name           string
	Class          Class
	Origin         Origin
	MadeBy         string            // key of the person or agent, or id of the schedule
	UserID         string            // person whose key made it; empty: none
	Workload       capacity.Workload // New makes it online when it is empty
	Window         calendar.Interval
	Shape          capacity.Shape
	Slots          []int   // its places in the pool; empty until booked
	ForJobs        ForJobs // whose jobs claim it by themselves; New fills it in when it is empty
	JobID          string  // of the job that claimed it; empty: none did
	PartOf         string  // the reservation that was divided, because somebody claimed a part; empty: none was
	Awaits         string  // the allocation that has its GPUs until its window begins; empty: none
	ReasonCode     string
	Probability    float64 // an agent's stated chance that it is claimed, else 0
	Degraded       bool    // the promise will be, or was, late
	Reason         string  // why it is in its state, a code

	Cost money.MicroUSD // what it commits; once ended, what it really held

	CreatedAt time.Time
	BookedAt  time.Time // when it was given its place; zero while it has none
	WarmedAt  time.Time // when its lead time came; zero if it never did
	ReadyAt   time.Time
	EndedAt   time.Time
	Version   int

	state State
}

// New returns r in one of the initial states.
func New(r Reservation, s State, now time.Time) (Reservation, error) {
	for _, initial := range Machine.Initial {
		if s == initial {
			r.state, r.CreatedAt, r.Workload = s, now, cmp.Or(r.Workload, capacity.Online)
			r.ForJobs = cmp.Or(r.ForJobs, r.usualClaimants())
			if s == Booked {
				r.BookedAt = now
			}
			return r, nil
		}
	}
	return r, fmt.Errorf("a reservation cannot begin as %q", s)
}

// Restore returns r in a stored state. Only the store calls it.
func Restore(r Reservation, s State) (Reservation, error) {
	if !Machine.Known(s) {
		return r, fmt.Errorf("restoring reservation %s: unknown state %q", r.ID, s)
	}
	r.state = s
	return r, nil
}

// State returns where the reservation is in its life.
func (r Reservation) State() State { return r.state }

// Apply returns the reservation after the event, or a *statemachine.IllegalError.
// The receiver is not changed. reason is a short code that is stored and shown.
func (r Reservation) Apply(event Event, reason string, now time.Time) (Reservation, error) {
	to, err := Machine.Next(r.state, event)
	if err != nil {
		return r, err
	}
	r.state, r.Reason = to, reason
	switch to {
	case Booked:
		r.BookedAt = now
	case Warming:
		if r.WarmedAt.IsZero() {
			r.WarmedAt = now
		}
	case Ready:
		r.ReadyAt = now
	}
	if Machine.Terminal(to) {
		r.EndedAt = now
	}
	return r, nil
}

// Placed reports whether the reservation occupies its slots.
func (r Reservation) Placed() bool {
	return r.state == Booked || r.state == Warming || r.state == Ready
}

// Live reports whether anything can still happen to the reservation.
func (r Reservation) Live() bool { return !Machine.Terminal(r.state) }

// Booking is the reservation's entry in the pool's calendar.
func (r Reservation) Booking() calendar.Booking {
	return calendar.Booking{ID: r.ID, Interval: r.Window, Slots: r.Slots, GPUs: r.Shape.PerNode, Short: r.Shape.Short}
}

// Occupies makes a reservation a calendar.Occupant while it has its place.
func (r *Reservation) Occupies(int) (calendar.Booking, bool) { return r.Booking(), r.Placed() }
