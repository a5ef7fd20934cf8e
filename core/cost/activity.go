package cost

import (
	"math/bits"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
)

// Part is a part of a charge.
type Part struct {
	GPUTime time.Duration
	Amount  money.MicroUSD
}

// Add returns both parts together.
func (p Part) Add(o Part) Part { return Part{p.GPUTime + o.GPUTime, p.Amount + o.Amount} }

// Used is the part of what a tenant held in which its GPUs were seen to do something. With
// Idle and Unobserved it is the whole charge.
func (c Charge) Used() Part {
	if c.Payer != Tenant {
		return Part{}
	}
	return Part{c.GPUTime - c.Idle.GPUTime - c.Unobserved.GPUTime, c.Amount - c.Idle.Amount - c.Unobserved.Amount}
}

// Add adds up two charges of the same payer.
func (c Charge) Add(o Charge) Charge {
	c.GPUTime, c.Amount = c.GPUTime+o.GPUTime, c.Amount+o.Amount
	c.Idle, c.Unobserved = c.Idle.Add(o.Idle), c.Unobserved.Add(o.Unobserved)
	return c
}

// divideByActivity says of what tenants held in the machine's life how much was idle, and how
// much was not observed. What they pay does not depend on it.
func (m Instance) divideByActivity(charges []Charge, life calendar.Interval) {
	if !slices.ContainsFunc(charges, func(c Charge) bool { return c.Payer == Tenant }) {
		return
	}
	used, idle := m.sumActivity(life)
	for i, c := range charges {
		if c.Payer == Tenant {
			charges[i] = c.divide(used[c.OrganizationID], idle[c.OrganizationID])
		}
	}
}

// sumActivity is for how long GPUs were used, and were idle, by who held them.
func (m Instance) sumActivity(life calendar.Interval) (used, idle map[string]time.Duration) {
	used, idle = map[string]time.Duration{}, map[string]time.Duration{}
	if len(m.Activity) == 0 {
		return used, idle
	}
	stretches := map[string][]activity.Stretch{}
	for _, s := range m.Activity {
		stretches[s.GPU] = append(stretches[s.GPU], s)
	}
	for _, holds := range m.timelines() {
		for _, h := range cutHolds(holds, life) {
			busy, quiet := activity.Split(stretches[capacity.GPUOf(h.GPU)], h.Held)
			used[h.OrganizationID] += busy
			idle[h.OrganizationID] += quiet
		}
	}
	return used, idle
}

// divide divides a charge by the time that was used, was idle, and is neither. Amounts are
// rounded down, and the longest part has what is left over.
func (c Charge) divide(used, idle time.Duration) Charge {
	c.Idle = Part{idle, portionOf(c.Amount, idle, c.GPUTime)}
	unobserved := c.GPUTime - used - idle
	c.Unobserved = Part{unobserved, portionOf(c.Amount, unobserved, c.GPUTime)}
	rest := c.Amount - c.Idle.Amount - c.Unobserved.Amount - portionOf(c.Amount, used, c.GPUTime)
	switch max(used, idle, unobserved) {
	case used:
	case idle:
		c.Idle.Amount += rest
	default:
		c.Unobserved.Amount += rest
	}
	return c
}

// portionOf is the part of an amount that a time is of the whole, rounded down.
func portionOf(amount money.MicroUSD, part, whole time.Duration) money.MicroUSD {
	if whole <= 0 || amount <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(amount), uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(whole))
	return money.MicroUSD(quotient)
}
