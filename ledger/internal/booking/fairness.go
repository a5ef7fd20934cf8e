package booking

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// capacity is all that a pool could hold. Bookings are not a part of it: there is no
// number of them that a pool has.
func poolCapacity(p capacity.Pool) quota.Vector {
	v := quota.Demand(p, capacity.Shape{Nodes: p.MaxNodes, PerNode: p.PerNode})
	v[quota.Bookings] = 0
	return v
}

// chargeEntry counts that an allocation was admitted, before it has held anything.
func chargeEntry(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation) {
	p.ChangeUsage(a.OrganizationID, func(f fairshare.Policy, s fairshare.Usage) fairshare.Usage {
		return f.ChargeEntry(s, tx.Now(), quota.Demand(p.Pool.Pool, a.Shape))
	})
}

// inUse is what counts on an organization at this moment besides its Usage.
type inUse struct {
	organizationID string
	demand         quota.Vector
	since          time.Time
	speculative    bool
}

// usageNow is the organizations' uses of a pool with what they hold now.
func usageNow(f fairshare.Policy, uses map[string]fairshare.Usage, held []inUse,
	now time.Time) map[string]fairshare.Usage {
	all := make(map[string]fairshare.Usage, len(uses))
	for org, s := range uses {
		all[org] = f.Advance(s, now)
	}
	for _, h := range held {
		if length := now.Sub(h.since); h.speculative {
			all[h.organizationID] = f.ChargeSpeculative(all[h.organizationID], now, h.demand, length)
		} else {
			all[h.organizationID] = f.ChargeUse(all[h.organizationID], now, h.demand, length)
		}
	}
	return all
}

// heldBy lists what is held in a pool now, in the order given.
func heldBy(p capacity.Pool, reservations []*reservation.Reservation, allocations []*allocation.Allocation) []inUse {
	var held []inUse
	for _, a := range allocations {
		if a.Live() && !a.ActiveAt.IsZero() {
			held = append(held, inUse{organizationID: a.OrganizationID, demand: quota.Demand(p, a.Shape),
				since: a.ActiveAt})
		}
	}
	for _, r := range reservations {
		if r.Placed() && r.Class == reservation.Speculative && !r.WarmedAt.IsZero() {
			held = append(held, inUse{organizationID: r.OrganizationID, demand: quota.Demand(p, r.Shape),
				since: r.WarmedAt, speculative: true})
		}
	}
	return held
}

// useNow is what each organization has used of the pool, or holds of it.
func useNow(tx *txn.Tx, p *txn.PoolTx) map[string]fairshare.Usage {
	return usageNow(tx.Config.Fairness, p.Uses, heldBy(p.Pool.Pool, p.Reservations.Rows, p.Allocations.Rows), tx.Now())
}

// readShares returns the fair share of each organization that is in both.
func readShares(tx *txn.Tx, p *txn.PoolTx, all map[string]fairshare.Usage, organizations []string) (
	map[string]float64, error) {
	shares := make(map[string]float64, len(organizations))
	for _, org := range organizations {
		if _, known := all[org]; !known {
			continue
		}
		o, err := tx.Port.Organization(ledger.Scope{All: true}, org)
		if err != nil {
			return nil, fmt.Errorf("reading organization: %w", err)
		}
		shares[org] = tx.Config.Fairness.Share(all[org], poolCapacity(p.Pool.Pool), o.Limits.Weight)
	}
	return shares, nil
}

// SharesOfWaiting returns the shares if anybody waits for a place: only then
// does their order matter.
func SharesOfWaiting(tx *txn.Tx, p *txn.PoolTx) (map[string]float64, error) {
	if !slices.ContainsFunc(p.Reservations.Rows,
		func(r *reservation.Reservation) bool { return r.State() == reservation.Waitlisted }) {
		return nil, nil
	}
	all := useNow(tx, p)
	return readShares(tx, p, all, txn.SortedKeys(all))
}

// rankSpeculative lists the bookings that give way with the shares of their holders.
func rankSpeculative(tx *txn.Tx, p *txn.PoolTx) ([]admission.Speculative, error) {
	bookings := slices.Clone(p.SpeculativeBookings())
	if len(bookings) == 0 {
		return nil, nil
	}
	holders := make([]string, len(bookings))
	for i, b := range bookings {
		r, ok := p.FindReservation(b.ID)
		if !ok {
			return nil, fmt.Errorf("ranking speculative bookings: %s is not in the pool", b.ID)
		}
		holders[i] = r.OrganizationID
	}
	shares, err := readShares(tx, p, useNow(tx, p), slices.Compact(slices.Sorted(slices.Values(holders))))
	if err != nil {
		return nil, err
	}
	for i := range bookings {
		bookings[i].Share = shares[holders[i]]
	}
	return bookings, nil
}

// SharesOf lists the fair shares of a pool that the actor may see, the largest
// first.
func SharesOf(l *txn.Engine, r ledger.Reader, actor ledger.Actor, s ledger.PoolState) ([]ledger.Share, error) {
	uses := map[string]fairshare.Usage{}
	for _, use := range s.Uses {
		uses[use.OrganizationID] = use.Usage
	}
	all := usageNow(l.Config.Fairness, uses, heldBy(s.Pool.Pool, pointersTo(s.Reservations), pointersTo(s.Allocations)),
		r.Now())
	out := []ledger.Share{}
	for _, id := range txn.SortedKeys(all) {
		org, err := r.Organization(actor.Scope(), id)
		if ledger.IgnoreMissing(err) != nil {
			return nil, fmt.Errorf("reading organization: %w", err)
		}
		if err != nil {
			continue
		}
		out = append(out, ledger.Share{OrganizationID: id, Weight: org.Limits.Weight, Usage: all[id],
			Factor: l.Config.Fairness.Factor(all[id]),
			Share:  l.Config.Fairness.Share(all[id], poolCapacity(s.Pool.Pool), org.Limits.Weight)})
	}
	slices.SortStableFunc(out, func(a, b ledger.Share) int {
		switch {
		case a.Share > b.Share:
			return -1
		case a.Share < b.Share:
			return 1
		default:
			return 0
		}
	})
	return out, nil
}

func pointersTo[T any](rows []T) []*T {
	out := make([]*T, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	return out
}
