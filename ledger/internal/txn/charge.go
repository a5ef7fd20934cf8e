package txn

import (
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// ChangeUsage changes what an organization has used of the pool.
func (p *PoolTx) ChangeUsage(organizationID string, change func(fairshare.Policy, fairshare.Usage) fairshare.Usage) {
	before, known := p.Uses[organizationID]
	p.Uses[organizationID] = change(p.Tx.Config.Fairness, before)
	p.markUseTouched(organizationID)
	p.Tx.undos = append(p.Tx.undos, func() {
		if p.Uses[organizationID] = before; !known {
			delete(p.Uses, organizationID)
		}
	})
}

// markUseTouched notes that an organization's use is to be written.
func (p *PoolTx) markUseTouched(organizationID string) {
	if p.charged[organizationID] {
		return
	}
	if p.charged == nil {
		p.charged = map[string]bool{}
	}
	p.charged[organizationID] = true
	p.Tx.undos = append(p.Tx.undos, func() { delete(p.charged, organizationID) })
}

// chargeAllocation counts what an allocation that is over has held.
func chargeAllocation(tx *Tx, p *PoolTx, a allocation.Allocation) {
	if a.ActiveAt.IsZero() {
		return
	}
	p.ChangeUsage(a.OrganizationID, func(f fairshare.Policy, s fairshare.Usage) fairshare.Usage {
		return f.ChargeUse(s, tx.Now(), quota.Demand(p.Pool.Pool, a.Shape), tx.Now().Sub(a.ActiveAt))
	})
}

// chargeReservation counts what a speculative reservation that is over has kept warm,
// and whether it came true. One that was given up before anything was warmed, or that
// gave way to others, says nothing of its maker's other speculative reservations.
func chargeReservation(tx *Tx, p *PoolTx, r reservation.Reservation) {
	if r.Class != reservation.Speculative {
		return
	}
	claimed := r.State() == reservation.Claimed
	judged := claimed || !r.WarmedAt.IsZero() && r.Reason != reasonDisplaced
	if !judged {
		return
	}
	p.ChangeUsage(r.OrganizationID, func(f fairshare.Policy, s fairshare.Usage) fairshare.Usage {
		if !r.WarmedAt.IsZero() {
			s = f.ChargeSpeculative(s, tx.Now(), quota.Demand(p.Pool.Pool, r.Shape), tx.Now().Sub(r.WarmedAt))
		}
		return f.Outcome(s, tx.Now(), r.Probability, r.Window.Length().Seconds()*float64(r.Shape.GPUs()), claimed)
	})
}

// reasonDisplaced is why a speculative reservation that gave way ends.
const reasonDisplaced = "displaced"
