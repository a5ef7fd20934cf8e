// Package admission decides whether a request for GPUs over a window gets a
// place. A decision names every blocker, not the first, and what would have
// been accepted instead.
package admission

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// Request asks for a shape over a window.
type Request struct {
	Class  reservation.Class
	Shape  gpu.Shape
	Window calendar.Interval
	// Now marks a request for a window that begins at once.
	Now bool
}

// View is what the decision is made on. Nothing in it is changed.
type View struct {
	Now   time.Time
	Pool  gpu.Pool
	Slots *calendar.Slots
	// Rank prefers slots, smaller first; negative excludes. Nil prefers none.
	Rank calendar.Rank
	// Speculative are the pool's bookings that give way to guaranteed ones, with
	// the least likely to be claimed first.
	Speculative []calendar.Booking

	Limits    quota.Limits
	Committed *quota.Commitments // of the organization, every pool
	Guessed   *quota.Commitments // the speculative part of it
	Cohort    []quota.Member     // the other members of its cohort
	Key       Capped             // who asks, and which of their caps hold
	User      Capped
}

// Capped is a key or a user. Nil Caps hold nothing back.
type Capped struct {
	Caps  *quota.Caps
	Spent *quota.Commitments // its own reservations; nil is none
}

// Code names a blocker.
type Code string

// The blockers.
const (
	WindowInPast       Code = "window_in_past"
	WindowTooLong      Code = "window_too_long"
	NoMatchingHardware Code = "no_matching_hardware" // the pool could never hold it
	CapacityExhausted  Code = "capacity_exhausted"
	QuotaExceeded      Code = "quota_exceeded"
	BudgetExceeded     Code = "budget_exceeded"    // of speculation
	CohortExhausted    Code = "cohort_exhausted"   // what the cohort lends is in use
	GPUHoursExceeded   Code = "gpu_hours_exceeded" // of a period
	SpendingExceeded   Code = "spending_exceeded"  // money of a period
	KeyCapExceeded     Code = "key_cap_exceeded"
	UserCapExceeded    Code = "user_cap_exceeded"
	PrewarmPaused      Code = "prewarm_paused"
	LeadTimeTooShort   Code = "lead_time_too_short" // a guess that would be over before a node is up
)

// Reason is one blocker with its numbers. Unit says what Limit and Asked count.
type Reason struct {
	Code    Code
	Message string
	Unit    string
	Limit   int64
	Asked   int64
	At      time.Time // when it would be exceeded first; zero: it has no time
	// ClearsAt is the first start at which it would not stand in the way; zero: not
	// known, or never.
	ClearsAt time.Time
}

// Offer is a request that would be accepted now.
type Offer struct {
	Shape  gpu.Shape
	Window calendar.Interval
}

// Decision is the answer. With no Reasons it is accepted: Slots is its place and
// Displaced lists the speculative bookings that must go first.
type Decision struct {
	Slots     []int
	Displaced []string
	Cost      gpu.MicroUSD
	Reasons   []Reason
	Offers    []Offer
}

// Accepted reports whether the request has a place.
func (d Decision) Accepted() bool { return len(d.Reasons) == 0 }

// OnlyCapacity reports whether the request would be accepted if the pool were
// emptier: the one case in which waiting helps.
func (d Decision) OnlyCapacity() bool {
	for _, r := range d.Reasons {
		if r.Code != CapacityExhausted {
			return false
		}
	}
	return !d.Accepted()
}

// horizon is how far ahead a later start is searched.
const horizon = 14 * 24 * time.Hour

// Decide answers the request. The same request and view give the same decision.
func Decide(r Request, v View) Decision {
	d := Decision{Cost: Cost(v.Pool, r.Shape, r.Window.Length())}
	d.Reasons = append(d.Reasons, windowReasons(r, v)...)
	if !fitsEver(r.Shape, v.Pool) {
		d.Reasons = append(d.Reasons, noHardware(r, v.Pool))
		d.Offers = offers(r, v)
		return d
	}
	d.Reasons = append(d.Reasons, limitReasons(r, v, d.Cost)...)
	slots, displaced, ok := place(r, v)
	if !ok && r.Window.Valid() { // an empty window has no place, and was refused above
		d.Reasons = append(d.Reasons, noCapacity(r, v))
	}
	if !d.Accepted() {
		d.Offers = offers(r, v)
		return d
	}
	d.Slots, d.Displaced = slots, displaced
	return d
}

// Cost is what the shape costs for the length: the share of the nodes' price
// that its GPUs are.
func Cost(p gpu.Pool, s gpu.Shape, length time.Duration) gpu.MicroUSD {
	if p.PerNode == 0 || length <= 0 {
		return 0
	}
	return (p.Price * gpu.MicroUSD(s.GPUs()) / gpu.MicroUSD(p.PerNode)).For(length)
}

func fitsEver(s gpu.Shape, p gpu.Pool) bool {
	return s.Nodes > 0 && s.PerNode > 0 && s.PerNode <= p.PerNode && s.Nodes <= p.MaxNodes
}

// place finds slots in the calendar as it is and, for a guaranteed request, in
// the calendar without the bookings that give way.
func place(r Request, v View) (slots []int, displaced []string, ok bool) {
	if slots, ok = v.Slots.Find(r.Shape, r.Window, v.Rank); ok || r.Class != reservation.Guaranteed {
		return slots, nil, ok
	}
	var removed []calendar.Booking
	for _, b := range v.Speculative {
		if !b.Interval.Overlaps(r.Window) {
			continue
		}
		v.Slots.Remove(b.ID)
		removed = append(removed, b)
		if slots, ok = v.Slots.Find(r.Shape, r.Window, v.Rank); ok {
			break
		}
	}
	displaced = restore(v.Slots, removed, r, slots, ok)
	return slots, displaced, ok
}

// restore puts the removed bookings back and returns those that cannot stay
// beside the request on its slots.
func restore(s *calendar.Slots, removed []calendar.Booking, r Request, slots []int, ok bool) []string {
	var displaced []string
	taken := make(map[int]bool, len(slots))
	for _, slot := range slots {
		taken[slot] = true
	}
	const probe = "\x00request"
	if ok {
		s.Force(calendar.Booking{ID: probe, Interval: r.Window, Slots: slots, GPUs: r.Shape.PerNode})
	}
	var out []calendar.Booking
	for _, b := range slices.Backward(removed) { // the likeliest to be claimed first
		if !slices.ContainsFunc(b.Slots, func(slot int) bool { return taken[slot] }) {
			s.Force(b)
		} else if err := s.Place(b); err != nil {
			displaced, out = append(displaced, b.ID), append(out, b)
		}
	}
	s.Remove(probe)
	for _, b := range out {
		s.Force(b)
	}
	return displaced
}
