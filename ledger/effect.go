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
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
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
	Wait          *plan.Estimate // of what does not get its GPUs at once, else nil
	// OrganizationID is whose GPUs are counted: the organization that is changed, or
	// else the actor's; empty where the request is about a pool. GPUsBefore and
	// GPUsAfter are the most that it holds and is promised at any instant of the time
	// that the request is about.
	OrganizationID        string
	GPUsBefore, GPUsAfter int

	held *calendar.Profile // of the changed organization, before
}

// setSubject says whose GPUs the effect is about, and what they held before; own is what
// the actor's organization held.
func (e *Effect) setSubject(actor Actor, own *calendar.Profile) *calendar.Profile {
	switch {
	case e.held != nil:
		e.OrganizationID = e.Organizations[0].After.ID
		return e.held
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

func (e *Effect) countGPUs(before, after *calendar.Profile) {
	e.GPUsBefore, e.GPUsAfter = before.Peak(e.changedSpan()), after.Peak(e.changedSpan())
}

// addUpCost adds up what new promises and allocations commit beyond the promises
// that they take over, and reads the limit that all stays under.
func (e *Effect) addUpCost(r Reader, organizationID string) error {
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

// estimateWaits estimates the longest wait among what is new.
func (e *Effect) estimateWaits(waits *Waits) error {
	longer := func(x *plan.Estimate, err error) error {
		if err == nil && x != nil && (e.Wait == nil || x.P50 > e.Wait.P50) {
			e.Wait = x
		}
		return err
	}
	for _, p := range e.Allocations {
		if p.Before == nil {
			if err := longer(waits.Allocation(p.After)); err != nil {
				return err
			}
		}
	}
	for _, p := range e.Reservations {
		if p.Before == nil {
			if err := longer(waits.Reservation(p.After)); err != nil {
				return err
			}
		}
	}
	return nil
}

// gpusOf counts what an organization holds and is promised, from the rows.
func gpusOf(r Reader, organizationID string) (*calendar.Profile, error) {
	if organizationID == "" {
		return &calendar.Profile{}, nil
	}
	c, err := r.Commitments(organizationID)
	if err != nil {
		return nil, fmt.Errorf("reading commitments: %w", err)
	}
	return c.All.Of(quota.GPUs), nil
}

// observing returns a ledger that works in tx and tells what it changes. It has no
// memory of its own, so that nothing of what is taken back stays in this one.
func observing(l *engine, tx Tx, e *Effect) *Ledger {
	shadow := New(&nestedStore{Store: l.store, tx: &observedTx{Tx: tx, effect: e}}, l.ids, l.cfg)
	shadow.dryRun = true
	return shadow
}

// observedTx notes every row that is saved through it.
type observedTx struct {
	Tx
	effect *Effect
}

// Nested has what fn saves noted too.
func (t *observedTx) Nested(fn func(tx Tx) error) error {
	return t.Tx.Nested(func(tx Tx) error { return fn(&observedTx{Tx: tx, effect: t.effect}) })
}

// Save notes the rows as they were, then saves them.
func (t *observedTx) Save(c Change) error {
	if err := t.noteChange(c); err != nil {
		return err
	}
	return t.Tx.Save(c)
}

func (t *observedTx) noteChange(c Change) error {
	all := Scope{All: true}
	var err error
	e := t.effect
	if len(c.Organizations) > 0 && c.Organizations[0].Version > 0 && len(e.Organizations) == 0 {
		if e.held, err = gpusOf(t.Tx, c.Organizations[0].ID); err != nil {
			return err
		}
	}
	if e.Organizations, err = addNoted(e.Organizations, c.Organizations,
		func(o Organization) (string, int) { return o.ID, o.Version },
		func(id string) (Organization, error) { return t.Organization(all, id) }); err != nil {
		return err
	}
	if e.Pools, err = addNoted(e.Pools, c.Pools, func(p Pool) (string, int) { return p.ID, p.Version },
		t.Pool); err != nil {
		return err
	}
	if e.Nodes, err = addNoted(e.Nodes, c.Nodes, func(n node.Node) (string, int) { return n.ID, n.Version },
		t.Node); err != nil {
		return err
	}
	if e.Reservations, err = addNoted(e.Reservations, c.Reservations,
		func(r reservation.Reservation) (string, int) { return r.ID, r.Version },
		func(id string) (reservation.Reservation, error) { return t.Reservation(all, id) }); err != nil {
		return err
	}
	e.Allocations, err = addNoted(e.Allocations, c.Allocations,
		func(a allocation.Allocation) (string, int) { return a.ID, a.Version },
		func(id string) (allocation.Allocation, error) { return t.Allocation(all, id) })
	return err
}

// addNoted adds rows that are about to be saved to those noted before, with what is
// stored now for the ones that were not noted yet.
func addNoted[T any](pairs []Pair[T], rows []T, head func(T) (id string, version int),
	read func(id string) (T, error)) ([]Pair[T], error) {
	for _, row := range rows {
		id, version := head(row)
		i := slices.IndexFunc(pairs, func(p Pair[T]) bool { known, _ := head(p.After); return known == id })
		switch {
		case i >= 0:
			pairs[i].After = row
		case version == 0:
			pairs = append(pairs, Pair[T]{After: row})
		default:
			before, err := read(id)
			if err != nil {
				return nil, fmt.Errorf("reading %s as it was: %w", id, err)
			}
			pairs = append(pairs, Pair[T]{Before: &before, After: row})
		}
	}
	return pairs, nil
}
