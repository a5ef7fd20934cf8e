// Package quota says what an organization and an agent's key may hold: limits
// on GPUs at any instant, now and in the future, and caps on what an agent may
// commit without a person.
package quota

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
)

// Limits are an organization's. Zero means none of it.
type Limits struct {
	GPUs              int          // held and promised at any one instant
	SpeculationPerDay gpu.MicroUSD // cost of speculative reservations that start in one UTC day
}

// Caps narrow what one key may do. They are enforced by the server: an agent's
// own configuration can only be stricter. Zero means none of it.
type Caps struct {
	MaxGPUs   int           // promised to this key at any one instant
	MaxPerDay gpu.MicroUSD  // cost of this key's reservations that start in one UTC day
	MaxLead   time.Duration // how far ahead a reservation of this key may start
	MaxWindow time.Duration // the longest single reservation
}

// Commitments are what is already held and promised.
type Commitments struct {
	GPUs calendar.Profile
	// Days holds the cost committed per UTC day.
	Days map[time.Time]gpu.MicroUSD
}

// Add counts n GPUs over iv at a cost that falls on the day of its start.
func (c *Commitments) Add(iv calendar.Interval, n int, cost gpu.MicroUSD) {
	c.GPUs.Add(iv, n)
	if c.Days == nil {
		c.Days = map[time.Time]gpu.MicroUSD{}
	}
	c.Days[Day(iv.Start)] += cost
}

// On returns the cost committed on the UTC day of t.
func (c *Commitments) On(t time.Time) gpu.MicroUSD { return c.Days[Day(t)] }

// Day returns the start of t's UTC day.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// Excess reports by how many GPUs the limit would be exceeded at the worst
// instant of iv if n more were promised; zero or less means that it holds.
func Excess(limit int, committed *calendar.Profile, iv calendar.Interval, n int) int {
	return committed.Peak(iv) + n - limit
}
