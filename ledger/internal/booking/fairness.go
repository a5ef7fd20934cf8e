package booking

import (
	"cmp"
	"fmt"
	"maps"
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
	p.ChangeUsage(ledger.AccountOf(a), func(f fairshare.Policy, s fairshare.Usage) fairshare.Usage {
		return f.ChargeEntry(s, tx.Now(), quota.Demand(p.Pool.Pool, a.Shape))
	})
}

// inUse is what counts on an account at this moment besides its Usage.
type inUse struct {
	ledger.Account
	demand      quota.Vector
	since       time.Time
	speculative bool
}

// usageNow is the uses of a pool with what is held now.
func usageNow(f fairshare.Policy, uses map[ledger.Account]fairshare.Usage, held []inUse,
	now time.Time) map[ledger.Account]fairshare.Usage {
	all := make(map[ledger.Account]fairshare.Usage, len(uses))
	for who, s := range uses {
		all[who] = f.Advance(s, now)
	}
	for _, h := range held {
		charge, length := f.ChargeUse, now.Sub(h.since)
		if h.speculative {
			charge = f.ChargeSpeculative
		}
		organization := ledger.Account{OrganizationID: h.OrganizationID}
		all[organization] = charge(all[organization], now, h.demand, length)
		if h.UserID != "" {
			all[h.Account] = charge(all[h.Account], now, h.demand, length)
		}
	}
	return all
}

// heldBy lists what is held in a pool now, in the order given.
func heldBy(p capacity.Pool, reservations []*reservation.Reservation, allocations []*allocation.Allocation) []inUse {
	var held []inUse
	for _, a := range allocations {
		if a.Live() && !a.ActiveAt.IsZero() {
			held = append(held, inUse{Account: ledger.AccountOf(*a), demand: quota.Demand(p, a.Shape), since: a.ActiveAt})
		}
	}
	for _, r := range reservations {
		if r.Placed() && r.Class == reservation.Speculative && !r.WarmedAt.IsZero() {
			held = append(held, inUse{Account: ledger.Account{OrganizationID: r.OrganizationID},
				demand: quota.Demand(p, r.Shape), since: r.WarmedAt, speculative: true})
		}
	}
	return held
}

// useNow is what each has used of the pool, or holds of it.
func useNow(tx *txn.Tx, p *txn.PoolTx) map[ledger.Account]fairshare.Usage {
	return usageNow(tx.Config.FairnessOf(p.Pool.Name), p.Uses,
		heldBy(p.Pool.Pool, p.Reservations.Rows, p.Allocations.Rows), tx.Now())
}

// readShares returns the fair share of each organization that is in both.
func readShares(tx *txn.Tx, p *txn.PoolTx, all map[ledger.Account]fairshare.Usage, organizations []string) (
	map[string]float64, error) {
	shares := make(map[string]float64, len(organizations))
	for _, org := range organizations {
		use, known := all[ledger.Account{OrganizationID: org}]
		if !known {
			continue
		}
		o, err := tx.Port.Organization(ledger.Scope{All: true}, org)
		if err != nil {
			return nil, fmt.Errorf("reading organization: %w", err)
		}
		shares[org] = tx.Config.FairnessOf(p.Pool.Name).Share(use, poolCapacity(p.Pool.Pool), o.Limits.Weight)
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
	var organizations []string
	for h := range all {
		if h.UserID == "" {
			organizations = append(organizations, h.OrganizationID)
		}
	}
	slices.Sort(organizations)
	return readShares(tx, p, all, organizations)
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

// leastShown is how much, in GPU-seconds, keys of nobody have had at least where they are shown: what rounding leaves
// is not.
const leastShown = 1

// SharesOf lists the fair shares of a pool that the actor may see, the largest
// first.
func SharesOf(l *txn.Engine, r ledger.Reader, actor ledger.Actor, s ledger.PoolState) ([]ledger.Share, error) {
	fairness := l.Config.FairnessOf(s.Pool.Name)
	all := UsesOf(fairness, s, r.Now())
	out := []ledger.Share{}
	add := func(to *ledger.Share, userID string, had fairshare.Usage) {
		to.Users = append(to.Users, ledger.UserShare{UserID: userID, Usage: had,
			Share: fairness.Share(had, poolCapacity(s.Pool.Pool), to.Weight)})
	}
	for _, h := range slices.SortedFunc(maps.Keys(all), ledger.CompareAccounts) {
		if last := len(out) - 1; h.UserID != "" {
			if last >= 0 && out[last].OrganizationID == h.OrganizationID {
				add(&out[last], h.UserID, all[h])
			}
			continue
		}
		org, err := r.Organization(actor.Scope(), h.OrganizationID)
		if ledger.IgnoreMissing(err) != nil {
			return nil, fmt.Errorf("reading organization: %w", err)
		}
		if err != nil {
			continue
		}
		out = append(out, ledger.Share{OrganizationID: org.ID, Weight: org.Limits.Weight, Usage: all[h],
			Factor: fairness.Factor(all[h]),
			Share:  fairness.Share(all[h], poolCapacity(s.Pool.Pool), org.Limits.Weight)})
	}
	slices.SortStableFunc(out, func(a, b ledger.Share) int { return cmp.Compare(b.Share, a.Share) })
	for i := range out {
		nobodys := out[i].Usage.Without(fairshare.Usage{})
		for _, u := range out[i].Users {
			nobodys = nobodys.Without(u.Usage)
		}
		if nobodys.Held[quota.GPUs] >= leastShown {
			add(&out[i], "", nobodys)
		}
		slices.SortStableFunc(out[i].Users, func(a, b ledger.UserShare) int { return cmp.Compare(b.Share, a.Share) })
	}
	return out, nil
}

// UsesOf is what each has used of a pool, with what they hold now.
func UsesOf(f fairshare.Policy, s ledger.PoolState, now time.Time) map[ledger.Account]fairshare.Usage {
	uses := map[ledger.Account]fairshare.Usage{}
	for _, use := range s.Uses {
		uses[use.Account] = use.Usage
	}
	return usageNow(f, uses, heldBy(s.Pool.Pool, pointersTo(s.Reservations), pointersTo(s.Allocations)), now)
}

func pointersTo[T any](rows []T) []*T {
	out := make([]*T, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	return out
}
