package preview

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/wait"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/outlook"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// estimateWaits estimates the longest wait among what is new.
func estimateWaits(e *ledger.Effect, waits *outlook.Waits) error {
	longer := func(x *wait.Estimate, err error) error {
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
func gpusOf(r ledger.Reader, organizationID string) (*calendar.Profile, error) {
	if organizationID == "" {
		return &calendar.Profile{}, nil
	}
	c, err := r.Commitments(organizationID)
	if err != nil {
		return nil, fmt.Errorf("reading commitments: %w", err)
	}
	return c.All.Of(quota.GPUs), nil
}

// observing returns an engine that works in tx and tells what it changes. It has no
// memory of its own, so that nothing of what is taken back stays in this one.
func observing(l *txn.Engine, tx ledger.Tx, e *ledger.Effect) *txn.Engine {
	shadow := txn.NewSingleEngine(&txn.NestedStore{Store: l.Store, Tx: &observedTx{Tx: tx, effect: e}}, l.IDs, l.Config)
	shadow.IsDryRun = true
	return shadow
}

// observedTx notes every row that is saved through it.
type observedTx struct {
	ledger.Tx
	effect *ledger.Effect
}

// Nested has what fn saves noted too.
func (t *observedTx) Nested(fn func(tx ledger.Tx) error) error {
	return t.Tx.Nested(func(tx ledger.Tx) error { return fn(&observedTx{Tx: tx, effect: t.effect}) })
}

// Save notes the rows as they were, then saves them.
func (t *observedTx) Save(c ledger.Change) error {
	if err := t.noteChange(c); err != nil {
		return err
	}
	return t.Tx.Save(c)
}

func (t *observedTx) noteChange(c ledger.Change) error {
	all := ledger.Scope{All: true}
	var err error
	e := t.effect
	if len(c.Organizations) > 0 && c.Organizations[0].Version > 0 && len(e.Organizations) == 0 {
		if e.Held, err = gpusOf(t.Tx, c.Organizations[0].ID); err != nil {
			return err
		}
	}
	if e.Organizations, err = addNoted(e.Organizations, c.Organizations,
		func(o ledger.Organization) (string, int) { return o.ID, o.Version },
		func(id string) (ledger.Organization, error) { return t.Organization(all, id) }); err != nil {
		return err
	}
	if e.Pools, err = addNoted(e.Pools, c.Pools, func(p ledger.Pool) (string, int) { return p.ID, p.Version },
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
func addNoted[T any](pairs []ledger.Pair[T], rows []T, head func(T) (id string, version int),
	read func(id string) (T, error)) ([]ledger.Pair[T], error) {
	for _, row := range rows {
		id, version := head(row)
		i := slices.IndexFunc(pairs, func(p ledger.Pair[T]) bool { known, _ := head(p.After); return known == id })
		switch {
		case i >= 0:
			pairs[i].After = row
		case version == 0:
			pairs = append(pairs, ledger.Pair[T]{After: row})
		default:
			before, err := read(id)
			if err != nil {
				return nil, fmt.Errorf("reading %s as it was: %w", id, err)
			}
			pairs = append(pairs, ledger.Pair[T]{Before: &before, After: row})
		}
	}
	return pairs, nil
}
