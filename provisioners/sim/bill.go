package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/money"
)

// Bill is what the cloud charges for everything it ever made, counted by the
// cloud itself so that a ledger can be checked against it.
type Bill struct {
	// Lines are the machines that exist or ended less than a day ago, by birth.
	Lines []Line
	// Settled is the sum of all older machines, which have no line any more.
	Settled Sum
	// Total is Settled and all lines.
	Total Sum
}

// Line is one machine on the bill.
type Line struct {
	ID, NodeID, Owner, Type string
	From, To                time.Time // To is the bill's time while the machine stands
	Sum
}

// Sum adds up machines.
type Sum struct {
	Machines int
	Billed   time.Duration // from creation to the end of termination, at least the minimum
	Cost     money.MicroUSD
}

func (s Sum) add(other Sum) Sum {
	return Sum{Machines: s.Machines + other.Machines, Billed: s.Billed + other.Billed, Cost: s.Cost + other.Cost}
}

// Bill returns the bill as of now, which must not be before the last call's
// time. The minimum is owed from the moment of creation.
func (c *Cloud) Bill(now time.Time) Bill {
	c.mu.Lock()
	defer c.mu.Unlock()
	bill := Bill{Settled: c.settled, Total: c.settled}
	for _, m := range c.tokens {
		line := m.billLine(now)
		bill.Lines = append(bill.Lines, line)
		bill.Total = bill.Total.add(line.Sum)
	}
	slices.SortFunc(bill.Lines, func(a, b Line) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.ID, b.ID))
	})
	return bill
}

func (m *machine) billLine(now time.Time) Line {
	to := now
	if hasReached(m.Ended, now) {
		to = m.Ended
	}
	return Line{
		ID: m.ID, NodeID: m.Spec.NodeID, Owner: m.Spec.Owner, Type: m.Spec.Type,
		From: m.Born, To: to, Sum: m.billSum(to),
	}
}

func (m *machine) billSum(to time.Time) Sum {
	billed := max(to.Sub(m.Born), m.Offer.MinBilling, 0)
	return Sum{Machines: 1, Billed: billed, Cost: m.hourlyPrice().For(billed)}
}
