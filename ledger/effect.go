package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/wait"
)

// Effect is what a request changed, each row as it was and as it is.
type Effect struct {
	At            time.Time
	Organizations []Pair[Organization]
	Pools         []Pair[Pool]
	Nodes         []Pair[node.Node]
	Reservations  []Pair[reservation.Reservation]
	Allocations   []Pair[allocation.Allocation]
	Cost          money.MicroUSD // what it commits in addition
	Limit         int            // GPUs that the organization may hold
	Wait          *wait.Estimate // of what does not get its GPUs at once, else nil
	// OrganizationID is whose GPUs are counted: the organization that is changed, or
	// else the actor's; empty where the request is about a pool. GPUsBefore and
	// GPUsAfter are the most that it holds and is promised at any instant of the time
	// that the request is about.
	OrganizationID        string
	GPUsBefore, GPUsAfter int

	Held *calendar.Profile // of the changed organization, before
}

// SetSubject says whose GPUs the effect is about, and what they held before; own is what
// the actor's organization held.
func (e *Effect) SetSubject(actor Actor, own *calendar.Profile) *calendar.Profile {
	switch {
	case e.Held != nil:
		e.OrganizationID = e.Organizations[0].After.ID
		return e.Held
	case slices.ContainsFunc(e.Pools, isRedefined):
		return &calendar.Profile{}
	default:
		e.OrganizationID = actor.OrganizationID
		return own
	}
}

// isRedefined reports whether people changed what the pool is, or made it.
func isRedefined(p Pair[Pool]) bool {
	return p.Before == nil || p.Before.DefinitionVersion != p.After.DefinitionVersion
}

// Pair is a row before and after. Before is nil for a new one.
type Pair[T any] struct {
	Before *T
	After  T
}

// Displaced lists the reservations that gave way, in the order of their ids.
func (e Effect) Displaced() []reservation.Reservation {
	var gone []reservation.Reservation
	for _, p := range e.Reservations {
		if p.Before != nil && p.After.Reason == "displaced" && p.Before.Live() && !p.After.Live() {
			gone = append(gone, p.After)
		}
	}
	slices.SortFunc(gone, func(a, b reservation.Reservation) int { return strings.Compare(a.ID, b.ID) })
	return gone
}

// changedSpan is the time, from now on, that the changed bookings are about; now, when
// there are none.
func (e Effect) changedSpan() calendar.Interval {
	var iv calendar.Interval
	widen := func(w calendar.Interval) {
		if w.Start.Before(e.At) {
			w.Start = e.At
		}
		if iv.Start.IsZero() || w.Start.Before(iv.Start) {
			iv.Start = w.Start
		}
		if w.End.After(iv.End) {
			iv.End = w.End
		}
	}
	for _, p := range e.Reservations {
		widen(p.After.Window)
	}
	for _, p := range e.Allocations {
		widen(p.After.Window)
	}
	if !iv.Valid() {
		return calendar.Interval{Start: e.At, End: e.At.Add(time.Microsecond)}
	}
	return iv
}

// CountGPUs sets what the organization holds before and after the effect.
func (e *Effect) CountGPUs(before, after *calendar.Profile) {
	e.GPUsBefore, e.GPUsAfter = before.Peak(e.changedSpan()), after.Peak(e.changedSpan())
}

// AddUpCost adds up what new promises and allocations commit beyond the promises
// that they take over, and reads the limit that all stays under.
func (e *Effect) AddUpCost(r Reader, organizationID string) error {
	for _, p := range e.Reservations {
		switch {
		case p.Before == nil:
			e.Cost += p.After.Cost
		case p.Before.Live() && p.After.State() == reservation.Claimed:
			e.Cost -= p.Before.Cost
		}
	}
	for _, p := range e.Allocations {
		if p.Before == nil {
			e.Cost += p.After.Cost
		}
	}
	e.Cost = max(e.Cost, 0)
	if organizationID == "" {
		return nil
	}
	org, err := r.Organization(Scope{All: true}, organizationID)
	if err != nil {
		return fmt.Errorf("reading organization: %w", err)
	}
	e.Limit = org.Limits.GPUs
	return nil
}
