package fleet

import (
	"context"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// DeletePool ends a pool, by id or name, in which nothing is left: with live
// nodes, bookings or schedules it is *InUseError. Work that a cluster's own scheduler
// placed there goes on, and is watched no more. Its history stays, and its name
// may be used again. Only an operator may.
func (l Fleet) DeletePool(ctx context.Context, actor ledger.Actor, idOrName string) error {
	return l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		p, err := tx.LivePool(idOrName)
		if err != nil {
			return err
		}
		if err := poolInUse(tx, p); err != nil {
			return err
		}
		if err := txn.EndAllWork(tx, p, tx.Now(), "pool_deleted", "is watched no more: its pool was deleted"); err != nil {
			return err
		}
		gone := p.Pool
		gone.DeletedAt = tx.Now()
		p.PutPool(gone)
		tx.AddEvent(ledger.Event{Type: "pool.deleted", Subject: gone.ID, PoolID: gone.ID, Message: gone.Name})
		return nil
	})
}

// poolInUse reports what is live in a locked pool.
func poolInUse(tx *txn.Tx, p *txn.PoolTx) error {
	s := plannerSnapshot(p)
	var in ledger.Remains
	in.Add("nodes", tenancy.IdsOf(s.Nodes, func(n node.Node) string { return n.ID }))
	in.Add("reservations", tenancy.IdsOf(s.Reservations, func(r reservation.Reservation) string { return r.ID }))
	held := slices.DeleteFunc(slices.Clone(s.Allocations), allocation.Allocation.Observed)
	in.Add("allocations", tenancy.IdsOf(held, func(a allocation.Allocation) string { return a.ID }))
	schedules, err := tenancy.LiveSchedules(tx, ledger.Scope{All: true},
		func(s ledger.Schedule) bool { return s.PoolID == p.Pool.ID })
	if err != nil {
		return err
	}
	in.Add("schedules", schedules)
	jobs, err := tx.Port.LiveJobs(p.Pool.ID)
	if err != nil {
		return err
	}
	in.Add("jobs", tenancy.IdsOf(jobs, func(j job.Job) string { return j.ID }))
	return in.InUseError("pool " + p.Pool.Name)
}
