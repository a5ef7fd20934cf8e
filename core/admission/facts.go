package admission

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
)

// Facts is every number that Judge looks at. It is a value that JSON gives back
// as it was.
type Facts struct {
	Now    time.Time         `json:",omitzero"`
	Pool   PoolFacts         `json:",omitzero"`
	Window calendar.Interval `json:",omitzero"` // what is judged
	Cost   money.MicroUSD    `json:",omitzero"`
	Limits quota.UsageReport `json:",omitzero"` // of the organization
	Key    CapFacts          `json:",omitzero"`
	User   CapFacts          `json:",omitzero"`
	Makers []CapFacts        `json:",omitempty"` // of the keys and people that made the key
	Pause  *Pause            `json:",omitempty"`
	Split  SplitFacts        `json:",omitzero"`
	Room   RoomFacts         `json:",omitzero"`
	Probes []Probe           `json:",omitempty"` // what could be offered instead
}

// PoolFacts are the pool's own.
type PoolFacts struct {
	ID       string        `json:",omitzero"`
	Name     string        `json:",omitzero"`
	PerNode  int           `json:",omitzero"`
	MaxNodes int           `json:",omitzero"`
	MaxLease time.Duration `json:",omitzero"`
	Paused   bool          `json:",omitzero"`
}

func (p *PoolFacts) everHolds(s capacity.Shape) bool {
	return s.Valid() && s.PerNode <= p.PerNode && s.Nodes <= p.MaxNodes
}

// CapFacts are those of a key or a user, if it is capped.
type CapFacts struct {
	Capped bool
	quota.CapUsage
}

// RoomFacts say what the calendar found.
type RoomFacts struct {
	Found bool            `json:",omitzero"`
	Slots []int           `json:",omitempty"` // the place, once the candidates that give way are gone
	Moves []calendar.Move `json:",omitempty"` // what must be moved for it
	// Candidates are the speculative bookings in the way, in the order in which they
	// give way, if that was asked for and helps.
	Candidates []Candidate `json:",omitempty"`
	Free       int         `json:",omitzero"` // GPUs free during the whole window, where nothing was found
	// Earliest is the first later start with a place for the same shape and length,
	// where nothing was found; zero: none within the horizon.
	Earliest time.Time `json:",omitzero"`
}

// Candidate is a speculative booking that could give way.
type Candidate struct {
	ID          string  `json:",omitzero"`
	Share       float64 `json:",omitzero"`
	Probability float64 `json:",omitzero"`
	Gives       bool    `json:",omitzero"`  // it has no place beside the request
	Offer       *Offer  `json:",omitempty"` // where it would have one
}

// Probe is another request that was looked at, in a pool, with its own facts.
type Probe struct {
	Request Request
	Facts   Facts
}
