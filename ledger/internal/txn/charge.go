package txn

import (
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// ChangeUsage changes what an account has used of the pool, and if it is a user's, what the organization's has.
func (p *PoolTx) ChangeUsage(who ledger.Account, change func(fairshare.Policy, fairshare.Usage) fairshare.Usage) {
	p.changeUsageOf(ledger.Account{OrganizationID: who.OrganizationID}, change)
	if who.UserID != "" {
		p.changeUsageOf(who, change)
	}
}

func (p *PoolTx) changeUsageOf(who ledger.Account, change func(fairshare.Policy, fairshare.Usage) fairshare.Usage) {
	before, known := p.Uses[who]
	p.Uses[who] = change(p.Tx.Config.FairnessOf(p.Pool.Name), before)
	p.markUseTouched(who)
	p.Tx.undos = append(p.Tx.undos, func() {
		if p.Uses[who] = before; !known {
			delete(p.Uses, who)
		}
	})
}

// markUseTouched notes that an account's use is to be written.
func (p *PoolTx) markUseTouched(who ledger.Account) {
	if p.charged[who] {
		return
	}
	if p.charged == nil {
		p.charged = map[ledger.Account]bool{}
	}
	p.charged[who] = true
	p.Tx.undos = append(p.Tx.undos, func() { delete(p.charged, who) })
}

// chargeAllocation counts what an allocation that is over has held.
func chargeAllocation(tx *Tx, p *PoolTx, a allocation.Allocation) {
	if a.ActiveAt.IsZero() {
		return
	}
	p.ChangeUsage(ledger.AccountOf(a), func(f fairshare.Policy, s fairshare.Usage) fairshare.Usage {
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
	maker := ledger.Account{OrganizationID: r.OrganizationID} // also where a user made it: people answer for their work
	p.ChangeUsage(maker, func(f fairshare.Policy, s fairshare.Usage) fairshare.Usage {
		if !r.WarmedAt.IsZero() {
			s = f.ChargeSpeculative(s, tx.Now(), quota.Demand(p.Pool.Pool, r.Shape), tx.Now().Sub(r.WarmedAt))
		}
		return f.Outcome(s, tx.Now(), r.Probability, r.Window.Length().Seconds()*float64(r.Shape.GPUs()), claimed)
	})
}

// reasonDisplaced is why a speculative reservation that gave way ends.
const reasonDisplaced = "displaced"
