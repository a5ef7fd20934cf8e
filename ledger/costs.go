package ledger

import (
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/core/money"
)

// CostLine is a sum of charges over machines of one pool from one provisioner.
type CostLine struct {
	PoolID      string // empty for orphans, which are nobody's
	Provisioner string
	Machines    int // that the charges are of
	cost.Charge
}

// Costs is what every machine cost in a period, divided. Every GPU-second is in
// one line, so that the sum of the lines is the providers' bill.
type Costs struct {
	From, To time.Time
	Lines    []CostLine // ordered by pool, provisioner, payer, organization and cause
}

// Total adds up the lines.
func (c Costs) Total() money.MicroUSD {
	var total money.MicroUSD
	for _, l := range c.Lines {
		total += l.Amount
	}
	return total
}

// AddCosts adds what machines cost to the report, phase by phase.
func (r *Report) AddCosts(c Costs) {
	for _, l := range c.Lines {
		switch {
		case l.Payer == cost.Tenant:
			r.BusyCost, r.BusyHours = r.BusyCost+l.Amount, r.BusyHours+l.GPUTime.Hours()
			r.HeldUsed, r.HeldIdle = r.HeldUsed.Add(l.Used()), r.HeldIdle.Add(l.Idle)
			r.HeldUnobserved = r.HeldUnobserved.Add(l.Unobserved)
		case l.Payer == cost.Orphan:
			r.OrphanCost += l.Amount
		case l.Cause == cost.MinBilling:
			r.MinBillingCost += l.Amount
		case l.Cause == cost.Boot, l.Cause == cost.FailedBoot, l.Cause == cost.Removal:
			r.BootCost, r.BootHours = r.BootCost+l.Amount, r.BootHours+l.GPUTime.Hours()
		default:
			r.IdleCost, r.IdleHours = r.IdleCost+l.Amount, r.IdleHours+l.GPUTime.Hours()
		}
	}
}

// IdleWaste is what machines cost while nobody held their GPUs. Idle alone could
// be gamed by booting all the time.
func (r Report) IdleWaste() money.MicroUSD {
	return r.IdleCost + r.BootCost + r.MinBillingCost + r.OrphanCost
}

// Spent is what all machines cost: Costs.Total of the same period.
func (r Report) Spent() money.MicroUSD { return r.BusyCost + r.IdleWaste() }

// Orphan is a machine with our tag that no node stands for. It is billed like
// any other, so it is written down from its birth to its end.
type Orphan struct {
	Machine string // the provider's id
	NodeID  string // as its tag says
	GPUs    int
	Source  capacity.Offering
	// BilledFrom and BilledUntil are the provider's times; BilledUntil is zero
	// while the machine stands.
	BilledFrom, BilledUntil time.Time
}
