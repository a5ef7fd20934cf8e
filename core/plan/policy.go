package plan

import (
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
)

// Policy tunes the planner. Zero fields mean the defaults.
type Policy struct {
	Guard time.Duration // added to the learned boot time; default 1 minute
	// a node that boots for longer than this and than five times its p95 is given up; default 15 minutes
	BootTimeout time.Duration

	WaitWorth float64 // what an hour of somebody's waiting is worth, in hours of a node; default 32
	// part of the break-even time that a node idles for although its next use is unlikely; default 0.5
	Patience float64
	Evidence float64 // hours of demand that must have been watched before an expectation releases a node; default 24

	// how long a provider is not asked again after it had nothing, the first time; default 3 minutes
	StockOut time.Duration

	BreakAfter int // nodes in a row that never became ready, after which the breaker opens; default 5
	// the length in which removals of idle nodes are capped; default 1 minute. What an idle node
	// costs until the next window is the price of the cap
	RemoveWindow time.Duration
	RemoveFloor  int     // idle nodes that may always be removed in it; default 50
	RemoveShare  float64 // part of the pool's nodes that may be removed in it; default 0.25
}

// WithDefaults fills what is zero.
func (p Policy) WithDefaults() Policy {
	setDefault(&p.Guard, time.Minute)
	setDefault(&p.BootTimeout, 15*time.Minute)
	setDefault(&p.WaitWorth, 32)
	setDefault(&p.Patience, 0.5)
	setDefault(&p.Evidence, 24)
	setDefault(&p.StockOut, 3*time.Minute)
	setDefault(&p.BreakAfter, 5)
	setDefault(&p.RemoveWindow, time.Minute)
	setDefault(&p.RemoveFloor, 50)
	setDefault(&p.RemoveShare, 0.25)
	return p
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Creates returns how many nodes a pool may ask for, and in which length of time,
// that have not served anybody. The cap stops what makes nodes in a loop and does
// no work with them; a node that an allocation used does not count against it.
func Creates(pool capacity.Pool) (limit int, window time.Duration) {
	limit, window = max(10, 3*pool.MaxNodes), 10*time.Minute
	if pool.MaxCreates > 0 {
		limit = pool.MaxCreates
	}
	if pool.CreateWindow > 0 {
		window = pool.CreateWindow
	}
	return limit, window
}

// removalCap is how many idle ones of so many nodes may be removed in RemoveWindow.
func (p Policy) removalCap(nodes int) int {
	return max(p.RemoveFloor, int(p.RemoveShare*float64(nodes)))
}

// Lead returns how long before its start a promise of the pool begins to warm.
func Lead(b learned.BootTimes, p Policy) time.Duration { return b.P95() + p.WithDefaults().Guard }
