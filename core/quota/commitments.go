package quota

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/money"
)

// Spend is what a booking uses up of a budget. All of it falls on the UTC day in
// which the booking starts, what it is prolonged by, too.
type Spend struct {
	Cost       money.MicroUSD `json:",omitzero"`
	GPUSeconds int64          `json:",omitzero"`
}

// SpendOf is the spend of GPUs held for a window at a cost. Part of a second
// counts as a whole one.
func SpendOf(w calendar.Interval, gpus int, cost money.MicroUSD) Spend {
	length := max(w.Length(), 0)
	return Spend{Cost: cost, GPUSeconds: int64((length+time.Second-1)/time.Second) * int64(gpus)}
}

func (s Spend) plus(o Spend) Spend {
	return Spend{Cost: s.Cost + o.Cost, GPUSeconds: s.GPUSeconds + o.GPUSeconds}
}

// Commitments are what is already held and promised. The zero value is nothing.
// Not safe for concurrent use.
type Commitments struct {
	held   calendar.VectorProfile
	days   map[int64]Spend // by days since 1970-01-01 UTC
	months map[int64]Spend // by months since year 0
}

// Add counts what is held over iv and spent on the day of its start.
func (c *Commitments) Add(iv calendar.Interval, v Vector, s Spend) {
	c.Hold(iv, v)
	c.Spend(iv.Start, s)
}

// Remove undoes exactly what Add with the same arguments did.
func (c *Commitments) Remove(iv calendar.Interval, v Vector, s Spend) {
	c.Hold(iv, Vector{}.Minus(v))
	c.Spend(iv.Start, Spend{Cost: -s.Cost, GPUSeconds: -s.GPUSeconds})
}

// Hold counts what is held over iv, without what it costs.
func (c *Commitments) Hold(iv calendar.Interval, v Vector) { c.held.Add(iv, v) }

// Spend counts s on t's UTC day, and in its month.
func (c *Commitments) Spend(t time.Time, s Spend) {
	if c.days == nil {
		c.days, c.months = map[int64]Spend{}, map[int64]Spend{}
	}
	addSpend(c.days, dayNumber(t), s)
	addSpend(c.months, monthNumber(t), s)
}

func addSpend(sums map[int64]Spend, key int64, s Spend) {
	if sum := sums[key].plus(s); sum == (Spend{}) {
		delete(sums, key)
	} else {
		sums[key] = sum
	}
}

// At returns what is held at t.
func (c *Commitments) At(t time.Time) Vector { return c.held.At(t) }

// Peak returns the most that is held of each resource at any one instant of iv.
func (c *Commitments) Peak(iv calendar.Interval) Vector { return c.held.Peak(iv) }

// Next returns the first instant after t at which what is held changes.
func (c *Commitments) Next(t time.Time) (time.Time, bool) { return c.held.Next(t) }

// Of returns what is held of one resource over time; it is the caller's.
func (c *Commitments) Of(r Resource) *calendar.Profile {
	p := &calendar.Profile{}
	for at, more := c.Next(time.Time{}); more; {
		next, again := c.Next(at)
		if again {
			p.Add(calendar.Interval{Start: at, End: next}, int(c.At(at)[r]))
		}
		at, more = next, again
	}
	return p
}

// On returns what is spent on t's UTC day.
func (c *Commitments) On(t time.Time) Spend { return c.days[dayNumber(t)] }

// In returns what is spent in t's period.
func (c *Commitments) In(p Period, t time.Time) Spend {
	if p == PerMonth {
		return c.months[monthNumber(t)]
	}
	return c.On(t)
}

// Days returns the starts of the UTC days on which something is spent, in order.
func (c *Commitments) Days() []time.Time {
	days := make([]time.Time, 0, len(c.days))
	for n := range c.days {
		days = append(days, time.Unix(n*secondsPerDay, 0).UTC())
	}
	slices.SortFunc(days, time.Time.Compare)
	return days
}

const secondsPerDay = 24 * 60 * 60

func dayNumber(t time.Time) int64 {
	s := t.Unix()
	n := s / secondsPerDay
	if s%secondsPerDay < 0 {
		n--
	}
	return n
}

func monthNumber(t time.Time) int64 {
	year, month, _ := t.UTC().Date()
	return int64(year)*12 + int64(month) - 1
}
