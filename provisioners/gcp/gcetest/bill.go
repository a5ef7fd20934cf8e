package gcetest

import (
	"time"

	"github.com/forewarm/forewarm/core/money"
)

// minBilling is the shortest time that an instance is billed for.
const minBilling = time.Minute

// Bill is what the cloud charges for every instance there ever was.
type Bill struct {
	Lines []Line
	Total money.MicroUSD
}

// Line is one instance on the bill.
type Line struct {
	ID         uint64
	Zone, Name string
	Type       string
	Spot       bool
	From, To   time.Time
	Billed     time.Duration // whole seconds, at least a minute
	Cost       money.MicroUSD
}

// Bill returns the bill as of now. It counts from the insert, which is the dear
// reading: Google itself starts when an instance runs. An insert that failed
// costs nothing.
func (c *Cloud) Bill(now time.Time) Bill {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runGuests(now)
	var bill Bill
	for _, m := range c.machines {
		if m.neverMade() {
			continue
		}
		line := m.billLine(now)
		bill.Lines = append(bill.Lines, line)
		bill.Total += line.Cost
	}
	return bill
}

func (m *machine) billLine(now time.Time) Line {
	to := now
	for _, end := range []time.Time{m.stopped, m.gone} {
		if hasReached(end, to) {
			to = end
		}
	}
	price := m.typed.Price
	if m.spot {
		price = m.typed.Spot
	}
	billed := max(to.Sub(m.born), minBilling)
	billed = (billed + time.Second - 1).Truncate(time.Second)
	return Line{
		ID: m.id, Zone: m.zone, Name: m.name, Type: m.kind, Spot: m.spot, From: m.born, To: to,
		Billed: billed, Cost: price.For(billed),
	}
}

// Live counts the instances that are neither on their way out nor gone, foreign
// ones aside.
func (c *Cloud) Live() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.runGuests(now)
	live := 0
	for _, m := range c.machines {
		if m.existsAt(now) && m.stopping.IsZero() && !m.foreign && !m.neverMade() {
			live++
		}
	}
	return live
}
