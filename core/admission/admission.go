// Package admission decides whether a request for GPUs over a window gets a
// place. A decision names every blocker, not the first, and what would have
// been accepted instead.
//
// Deciding has two halves: Observe asks the calendar and the commitments for
// every number that matters and returns them as Facts, and Judge decides on
// those alone. What was decided can therefore be written down (Record) and
// decided again, bit for bit, without the world it was decided in.
package admission

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// Request asks for a shape over a window.
type Request struct {
	Class    reservation.Class `json:",omitzero"`
	Workload capacity.Workload `json:",omitzero"` // empty: online
	Shape    capacity.Shape    `json:",omitzero"`
	Window   calendar.Interval `json:",omitzero"`
	// Range, if it is not zero, is given instead of Window, which is then part of
	// the answer. It should pass its Check.
	Range calendar.TimeRange `json:",omitzero"`
	// Since is when the booking began of which Window is the rest; zero: Window is all
	// of it. The booking is as long as from there, and counts in the period of Since:
	// the whole of it, or with Prolongs, where it counts already, what Window adds.
	Since    time.Time `json:",omitzero"`
	Prolongs bool      `json:",omitzero"`
	// At are the slots of the booking that Window prolongs, each with as many GPUs as it
	// has there: there is a place there or none. Nil: any slots will do.
	At []int `json:",omitempty"`
	// Boot is the part of Window in which nodes boot: it takes places, but is neither
	// charged nor part of the lease. Of what prolongs a booking it lies behind Since.
	Boot time.Duration `json:",omitzero"`
	// Now marks a request for a window that begins at once.
	Now bool `json:",omitzero"`
}

// View is what the decision is made on. Nothing in it is changed when Decide
// returns; while it runs, the calendars of the pools are.
type View struct {
	Now time.Time
	PoolView
	// Others are the pools that offers may name instead, the preferred ones first.
	Others []PoolView

	Limits                 quota.Limits
	Committed              *quota.Commitments // of the organization, every pool
	SpeculativeCommitments *quota.Commitments // the speculative part of it
	Cohort                 []quota.Member     // the other members of its cohort
	Key                    Capped             // who asks, and which of their caps hold
	User                   Capped
	// the keys, and their people, that made the key: all that was made under each counts for it
	Makers []Capped

	// Pause is what keeps speculative reservations from being made ready in every
	// pool; nil is nothing.
	Pause *Pause

	// Brief leaves out what takes a search and only helps whoever is refused: offers,
	// and when a limit would hold. The decision is the same.
	Brief bool

	// Buf is memory for the place of an accepted request, or nil. With room in it
	// such a decision allocates nothing; its Slots are then valid until Buf is used
	// again.
	Buf []int
}

// Pause keeps speculative reservations from being made ready.
type Pause struct {
	Everybody bool      `json:",omitzero"` // or else the organization alone
	Reason    string    `json:",omitzero"` // in the words of who paused
	Until     time.Time `json:",omitzero"` // zero: until somebody resumes it
}

// PoolView is one pool and what is booked in it.
type PoolView struct {
	Pool  capacity.Pool
	Slots *calendar.Slots
	Tiers calendar.Tiers // which slots are preferred; nil: none is
	// Speculative are the bookings that give way to guaranteed ones, in any order.
	Speculative []Speculative
	// Movable are the ids of bookings that may be given other slots: those for
	// which no node is being made ready. They are moved before any is displaced.
	Movable []string
	// Used is what each workload has booked of a split pool; nil is nothing.
	Used map[capacity.Workload]*calendar.Profile
}

// Speculative is a speculative booking.
type Speculative struct {
	calendar.Booking
	Share       float64 // the fair share that its holder has had, of core/fairshare
	Probability float64 // of being claimed
}

// Capped is a key or a user. Nil Caps hold nothing back.
type Capped struct {
	Caps  *quota.Caps
	Spent *quota.Commitments // its own bookings and those of what it made; nil is none
}

// Decision is the answer. With no Reasons it is accepted: Slots is its place in
// Window, Moves are made first, in their order, with (*calendar.Slots).Move, and
// Displaced lists the speculative bookings that must go before.
type Decision struct {
	Window    calendar.Interval `json:",omitzero"`
	Slots     []int             `json:",omitempty"`
	Moves     []calendar.Move   `json:",omitempty"`
	Displaced []Displacement    `json:",omitempty"`
	Cost      money.MicroUSD    `json:",omitzero"`
	Reasons   []Reason          `json:",omitempty"`
	Offers    []Offer           `json:",omitempty"`
}

// Displacement is a speculative booking that must go, and where it would have a
// place once the decision is carried out, beside the offers of the others; nil:
// nowhere. The limits of its holder are checked when it is taken.
type Displacement struct {
	ID    string
	Offer *Offer `json:",omitempty"`
}

// Offer is a request that would be accepted now.
type Offer struct {
	Pool   string // id of the pool; the one that was asked, or one of View.Others
	Shape  capacity.Shape
	Window calendar.Interval
	Cost   money.MicroUSD
	// Reservation is to be claimed at the start of Window or later, in place of a
	// booking of its own; empty: the offer is a new booking.
	Reservation string `json:",omitzero"`
}

// Accepted reports whether the request has a place.
func (d Decision) Accepted() bool { return len(d.Reasons) == 0 }

// OnlyCapacity reports whether the request would be accepted if the pool were
// emptier: the one case in which waiting helps.
func (d Decision) OnlyCapacity() bool {
	for i := range d.Reasons {
		if c := d.Reasons[i].Code; c != CapacityExhausted && c != WorkloadShareExceeded {
			return false
		}
	}
	return !d.Accepted()
}

// DisplacedIDs returns the ids of the bookings that must go.
func (d Decision) DisplacedIDs() []string {
	var ids []string
	for _, gone := range d.Displaced {
		ids = append(ids, gone.ID)
	}
	return ids
}

// Decide answers the request. The same request and view give the same decision.
func Decide(r Request, v View) Decision {
	f := Observe(r, v)
	return Judge(r, f)
}

// Cost is what the shape costs for the length: the share of the nodes' price
// that its GPUs are.
func Cost(p capacity.Pool, s capacity.Shape, length time.Duration) money.MicroUSD {
	if p.PerNode == 0 || length <= 0 || !s.Valid() {
		return 0
	}
	return (p.Price * money.MicroUSD(s.GPUs()) / money.MicroUSD(p.PerNode)).For(length)
}
