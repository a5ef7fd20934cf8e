package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// PoolUse is what an organization has used of a pool, as fair share counts it.
// What is still held is not in it; see shares.
type PoolUse struct {
	PoolID         string
	OrganizationID string
	Usage          fairshare.Usage
}

// capacity is all that a pool could hold. Bookings are not a part of it: there is no
// number of them that a pool has.
func poolCapacity(p capacity.Pool) quota.Vector {
	v := quota.Demand(p, capacity.Shape{Nodes: p.MaxNodes, PerNode: p.PerNode})
	v[quota.Bookings] = 0
	return v
}

// changeUsage changes what an organization has used of the pool.
func (p *poolTx) changeUsage(organizationID string, change func(fairshare.Policy, fairshare.Usage) fairshare.Usage) {
	before, known := p.uses[organizationID]
	p.uses[organizationID] = change(p.tx.cfg.Fairness, before)
	p.markUseTouched(organizationID)
	p.tx.undos = append(p.tx.undos, func() {
		if p.uses[organizationID] = before; !known {
			delete(p.uses, organizationID)
		}
	})
}

// markUseTouched notes that an organization's use is to be written.
func (p *poolTx) markUseTouched(organizationID string) {
	if p.charged[organizationID] {
		return
	}
	if p.charged == nil {
		p.charged = map[string]bool{}
	}
	p.charged[organizationID] = true
	p.tx.undos = append(p.tx.undos, func() { delete(p.charged, organizationID) })
}

// chargeAllocation counts what an allocation that is over has held.
func chargeAllocation(tx *groupTx, p *poolTx, a allocation.Allocation) {
	if a.ActiveAt.IsZero() {
		return
	}
	p.changeUsage(a.OrganizationID, func(f fairshare.Policy, s fairshare.Usage) fairshare.Usage {
		return f.ChargeUse(s, tx.now(), quota.Demand(p.Pool.Pool, a.Shape), tx.now().Sub(a.ActiveAt))
	})
}

// chargeEntry counts that an allocation was admitted, before it has held anything.
func chargeEntry(tx *groupTx, p *poolTx, a allocation.Allocation) {
	p.changeUsage(a.OrganizationID, func(f fairshare.Policy, s fairshare.Usage) fairshare.Usage {
		return f.ChargeEntry(s, tx.now(), quota.Demand(p.Pool.Pool, a.Shape))
	})
}

// chargeReservation counts what a guess that is over has kept warm, and whether
// it came true. One that was given up before anything was warmed, or that gave
// way to others, says nothing of its maker's guesses.
func chargeReservation(tx *groupTx, p *poolTx, r reservation.Reservation) {
	if r.Class != reservation.Speculative {
		return
	}
	claimed := r.State() == reservation.Claimed
	judged := claimed || !r.WarmedAt.IsZero() && r.Reason != reasonDisplaced
	if !judged {
		return
	}
	p.changeUsage(r.OrganizationID, func(f fairshare.Policy, s fairshare.Usage) fairshare.Usage {
		if !r.WarmedAt.IsZero() {
			s = f.ChargeSpeculative(s, tx.now(), quota.Demand(p.Pool.Pool, r.Shape), tx.now().Sub(r.WarmedAt))
		}
		return f.Outcome(s, tx.now(), r.Probability, r.Window.Length().Seconds()*float64(r.Shape.GPUs()), claimed)
	})
}

// reasonDisplaced is why a guess ends that gave way.
const reasonDisplaced = "displaced"

// Share is an organization's part of a pool.
type Share struct {
	OrganizationID string
	Weight         int
	Share          float64         // weighted dominant share of decayed use
	Factor         float64         // how many times idle time of its guesses counts
	Usage          fairshare.Usage // with what is held at this moment
}

// inUse is what counts on an organization at this moment besides its Usage.
type inUse struct {
	organizationID string
	demand         quota.Vector
	since          time.Time
	guess          bool
}

// usageNow is the organizations' uses of a pool with what they hold now.
func usageNow(f fairshare.Policy, uses map[string]fairshare.Usage, held []inUse,
	now time.Time) map[string]fairshare.Usage {
	all := make(map[string]fairshare.Usage, len(uses))
	for org, s := range uses {
		all[org] = f.Advance(s, now)
	}
	for _, h := range held {
		if length := now.Sub(h.since); h.guess {
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
				since: r.WarmedAt, guess: true})
		}
	}
	return held
}

// useNow is what each organization has used of the pool, or holds of it.
func useNow(tx *groupTx, p *poolTx) map[string]fairshare.Usage {
	return usageNow(tx.cfg.Fairness, p.uses, heldBy(p.Pool.Pool, p.reservations.rows, p.allocations.rows), tx.now())
}

// readShares returns the fair share of each organization that is in both.
func readShares(tx *groupTx, p *poolTx, all map[string]fairshare.Usage, organizations []string) (map[string]float64, error) {
	shares := make(map[string]float64, len(organizations))
	for _, org := range organizations {
		if _, known := all[org]; !known {
			continue
		}
		o, err := tx.port.Organization(Scope{All: true}, org)
		if err != nil {
			return nil, fmt.Errorf("reading organization: %w", err)
		}
		shares[org] = tx.cfg.Fairness.Share(all[org], poolCapacity(p.Pool.Pool), o.Limits.Weight)
	}
	return shares, nil
}

// sharesOfWaiting returns the shares if anybody waits for a place: only then
// does their order matter.
func sharesOfWaiting(tx *groupTx, p *poolTx) (map[string]float64, error) {
	if !slices.ContainsFunc(p.reservations.rows,
		func(r *reservation.Reservation) bool { return r.State() == reservation.Waitlisted }) {
		return nil, nil
	}
	all := useNow(tx, p)
	return readShares(tx, p, all, sortedKeys(all))
}

// rankSpeculative lists the bookings that give way with the shares of their holders.
func rankSpeculative(tx *groupTx, p *poolTx) ([]admission.Speculative, error) {
	guesses := slices.Clone(p.speculativeBookings())
	if len(guesses) == 0 {
		return nil, nil
	}
	holders := make([]string, len(guesses))
	for i, g := range guesses {
		r, ok := p.findReservation(g.ID)
		if !ok {
			return nil, fmt.Errorf("ranking guesses: %s is not in the pool", g.ID)
		}
		holders[i] = r.OrganizationID
	}
	shares, err := readShares(tx, p, useNow(tx, p), slices.Compact(slices.Sorted(slices.Values(holders))))
	if err != nil {
		return nil, err
	}
	for i := range guesses {
		guesses[i].Share = shares[holders[i]]
	}
	return guesses, nil
}

// Shares reads the fair shares of a pool, by id or name, that the actor may see:
// an organization its own, an operator all. The largest comes first.
func (l Reporting) Shares(ctx context.Context, actor Actor, idOrName string) (Pool, []Share, error) {
	var pool Pool
	var out []Share
	err := l.store.Read(ctx, func(r Reader) error {
		found, err := LivePool(r, idOrName)
		if err != nil {
			return err
		}
		state, err := r.PoolState(found.ID)
		if err != nil {
			return fmt.Errorf("reading pool: %w", err)
		}
		pool = state.Pool
		out, err = sharesOf(l.engine, r, actor, state)
		return err
	})
	return pool, out, err
}

func sharesOf(l *engine, r Reader, actor Actor, s PoolState) ([]Share, error) {
	uses := map[string]fairshare.Usage{}
	for _, use := range s.Uses {
		uses[use.OrganizationID] = use.Usage
	}
	all := usageNow(l.cfg.Fairness, uses, heldBy(s.Pool.Pool, pointersTo(s.Reservations), pointersTo(s.Allocations)),
		r.Now())
	out := []Share{}
	for _, id := range sortedKeys(all) {
		org, err := r.Organization(actor.Scope(), id)
		if ignoreMissing(err) != nil {
			return nil, fmt.Errorf("reading organization: %w", err)
		}
		if err != nil {
			continue
		}
		out = append(out, Share{OrganizationID: id, Weight: org.Limits.Weight, Usage: all[id],
			Factor: l.cfg.Fairness.Factor(all[id]),
			Share:  l.cfg.Fairness.Share(all[id], poolCapacity(s.Pool.Pool), org.Limits.Weight)})
	}
	slices.SortStableFunc(out, func(a, b Share) int {
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
