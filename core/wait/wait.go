// Package wait estimates how long somebody will still wait for GPUs: first for
// a place, until leases and bookings end, then for nodes, until they are
// requested and have booted. It is the only estimate of a wait; package plan
// gathers its facts.
package wait

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/learned"
)

// Bases of an estimate; where several apply they are joined by a plus sign.
const (
	BasisNow      = "now"        // nothing is waited for
	BasisBoots    = "boot_times" // boots of this pool
	BasisPrior    = "prior"      // what was assumed before anything was seen
	BasisCalendar = "calendar"   // bookings' ends: exact if nobody leaves early
	BasisLeases   = "lease_use"  // how early leases of this pool ended
	BasisStock    = "stock_outs" // how often the provider had nothing lately
)

// MostPlaces is how many places an estimate is worth looking at, unless more are
// needed: those that have room first matter most.
const MostPlaces = 128

// Facts is what somebody waits for: first a place, then nodes.
type Facts struct {
	Places   []Place         `json:"places,omitempty"`      // slots that will have room
	Need     int             `json:"need,omitempty"`        // how many of them must come free, for those ahead as well
	Cleaning time.Duration   `json:"cleaning_ns,omitempty"` // after each lease
	Starts   time.Duration   `json:"starts_ns,omitempty"`   // until its time begins, however early there is room
	Ages     []time.Duration `json:"ages_ns,omitempty"`     // since each node that is on its way was asked for
	Missing  int             `json:"missing,omitempty"`     // nodes that are still to be asked for
	Blocked  time.Duration   `json:"blocked_ns,omitempty"`  // until they may be
	Trials   []time.Duration `json:"trials_ns,omitempty"`   // since each node was asked for that must be ready first
	// Stock is set while the provider has nothing: the next time it is asked it may
	// have nothing again.
	Stock *StockOut `json:"stock,omitempty"`
	// Instead are slots that could be taken over, instead of the missing nodes, when
	// leases on them end; Turn of them are needed, with those of who comes first.
	Instead []Place           `json:"instead,omitempty"`
	Turn    int               `json:"turn,omitempty"`
	Boot    learned.BootTimes `json:"boot"`
	Leases  learned.LeaseUse  `json:"leases"`
}

// Place is a slot that will have room: after Room if nobody leaves early, and not
// before Fixed even if every lease in the way ends now.
type Place struct {
	Room  time.Duration `json:"room_ns"`
	Fixed time.Duration `json:"fixed_ns,omitempty"`
	Holds []Hold        `json:"holds,omitempty"` // leases in the way
}

// Hold is a lease that runs.
type Hold struct {
	Age   time.Duration `json:"age_ns"`   // since it began
	Lease time.Duration `json:"lease_ns"` // its whole length
}

// Estimate is how long a wait will still be: in one case of ten less than P10,
// in nine of ten less than P90. Basis says what it rests on, and Samples how many
// observations that is; with none, it is what the prior says.
type Estimate struct {
	P10     time.Duration `json:"p10_ns"`
	P50     time.Duration `json:"p50_ns"`
	P90     time.Duration `json:"p90_ns"`
	Basis   string        `json:"basis"`
	Samples int           `json:"samples"`
}

// EstimateFrom estimates how long a wait will still be. What has lasted for some time
// already is estimated from those observations only that lasted longer; things
// that must end are taken to be independent. The parts of a wait are added
// quantile by quantile, which is wide rather than narrow.
func EstimateFrom(f Facts) Estimate {
	place, nodes := f.waitForPlace(), f.waitForNodes()
	e := Estimate{}
	for q, to := range map[float64]*time.Duration{0.1: &e.P10, 0.5: &e.P50, 0.9: &e.P90} {
		*to = max(f.Starts, place(q)+nodes(q))
	}
	e.Basis, e.Samples = f.describeBasis()
	return e
}

// waitQuantile is the quantile function of a wait.
type waitQuantile func(q float64) time.Duration

func (f Facts) waitForNodes() waitQuantile {
	n := len(f.Ages) + f.Missing
	if n == 0 {
		return func(float64) time.Duration { return 0 }
	}
	boots := f.Boot.Distribution()
	return func(q float64) time.Duration {
		each, longest := math.Pow(q, 1/float64(n)), time.Duration(0)
		for _, age := range f.Ages {
			longest = max(longest, boots.Remaining(age, each))
		}
		if f.Missing > 0 {
			longest = max(longest, f.waitForMissing(boots, q, each))
		}
		return longest
	}
}

// waitForMissing is when nodes are there that are still to be asked for.
func (f Facts) waitForMissing(boots *learned.Distribution, q, each float64) time.Duration {
	given := func(q float64) time.Duration { return f.Blocked + f.Stock.givenAfter(q) }
	booted := func(q, each float64) time.Duration {
		before := given(q)
		for _, age := range f.Trials {
			before = max(before, boots.Remaining(age, q))
		}
		return before + boots.Remaining(0, each)
	}
	asked := booted(q, each)
	if f.Stock == nil || f.Turn == 0 || len(f.Instead) < f.Turn {
		return asked
	}
	n := float64(f.Missing)
	return f.waitForEither(q, asked, func(q float64) time.Duration { return booted(q, math.Pow(q, 1/n)) })
}

// waitForEither is the quantile of whatever comes first of two independent things: nodes
// that are asked for, or places that leases leave.
func (f Facts) waitForEither(q float64, asked time.Duration, booted waitQuantile) time.Duration {
	used := f.Leases.Distribution()
	left := Facts{Need: f.Turn, Cleaning: f.Cleaning}
	left.Places = f.Instead
	over := func(t time.Duration) float64 { // the chance that neither has come by t
		low, high := 0.0, 1.0
		for range 20 {
			if mid := (low + high) / 2; booted(mid) <= t {
				low = mid
			} else {
				high = mid
			}
		}
		return (1 - low) * (1 - min(1, left.chanceOfEnough(used, t)))
	}
	low, high := -closeEnough, asked
	for high-low > closeEnough {
		if t := low + (high-low)/2; over(t) <= 1-q {
			high = t
		} else {
			low = t
		}
	}
	return max(0, high)
}

// StockOut is a time in which the provider has nothing. The longer it lasts, the
// longer it is likely to last.
type StockOut struct {
	Odds    float64       `json:"odds"`     // of being given a node, as at any time
	Refused int           `json:"refused"`  // blocks in a row
	Block   time.Duration `json:"block_ns"` // the first; each is twice as long as the one before, up to 16 times
}

const (
	// mostBlocks bounds how many times in a row an estimate sees nothing.
	mostBlocks = 200
	// What a provider's odds are taken to be at least and at most in a stock-out:
	// few are known, and those of other times are better.
	leastOdds, mostOdds = 0.2, 0.7
)

// givenAfter is how long after the present block the provider is likely to give a node,
// at quantile q. A stock-out's length has a Lomax distribution, by which it goes on
// for as long again with the same chance however long it lasted; since blocks
// double, that is the chance of being refused once more, as the odds tell it.
func (s *StockOut) givenAfter(q float64) (after time.Duration) {
	if s == nil {
		return 0
	}
	lasts := -math.Log2(1 - min(max(s.Odds, leastOdds), mostOdds))
	block := func(n int) time.Duration { return s.Block << min(n, learned.MaxBlocks) }
	known := s.Block // how long it has lasted for sure, and one block
	for n := range s.Refused - 1 {
		known += block(n)
	}
	next := known + block(max(s.Refused-1, 0))
	for n := range mostBlocks {
		if math.Pow(float64(known)/float64(next), lasts) <= 1-q {
			break
		}
		after += block(s.Refused + n)
		next += block(s.Refused + n)
	}
	return after
}

// Within is the estimate of a wait that is given up after some time, and whether it
// is likely to be over by then. No part of it is beyond.
func (e Estimate) Within(limit time.Duration) (Estimate, bool) {
	if e.P50 > limit {
		return Estimate{}, false
	}
	e.P90 = min(e.P90, limit)
	return e, true
}

// closeEnough is how finely the wait for a place is known.
const closeEnough = 10 * time.Millisecond

// waitForPlace is when enough places have room. It is known only as the chance that it is
// over by then, so that halving finds its quantiles.
func (f Facts) waitForPlace() waitQuantile {
	if f.Need == 0 || len(f.Places) == 0 {
		return func(float64) time.Duration { return 0 }
	}
	used := f.Leases.Distribution()
	return func(q float64) time.Duration {
		low, high := -closeEnough, time.Duration(0)
		for _, p := range f.Places {
			high = max(high, p.Room)
		}
		for high-low > closeEnough {
			if t := low + (high-low)/2; f.chanceOfEnough(used, t) >= q {
				high = t
			} else {
				low = t
			}
		}
		return max(0, high)
	}
}

// chanceOfEnough is the chance that as many places as are needed have room by t: that of a
// Poisson binomial distribution, place by place.
func (f Facts) chanceOfEnough(used *learned.Distribution, t time.Duration) float64 {
	chances := make([]float64, f.Need+1) // that so many have, the last that more do, too
	chances[0] = 1
	for _, p := range f.Places {
		has := f.chanceOfRoom(p, used, t)
		for n := f.Need; n > 0; n-- {
			stays := chances[n] * (1 - has)
			if n == f.Need {
				stays = chances[n]
			}
			chances[n] = stays + chances[n-1]*has
		}
		chances[0] *= 1 - has
	}
	return chances[f.Need] + 1e-12 // of certain ones, too, after rounding
}

// chanceOfRoom is the chance that a place has room by t.
func (f Facts) chanceOfRoom(p Place, used *learned.Distribution, t time.Duration) float64 {
	switch {
	case t >= p.Room:
		return 1
	case t < p.Fixed || len(p.Holds) == 0:
		return 0
	}
	all := 1.0
	for _, h := range p.Holds {
		all *= h.endedBy(used, t-f.Cleaning)
	}
	return all
}

// endedBy is the chance that a lease has ended after t more.
func (h Hold) endedBy(used *learned.Distribution, t time.Duration) float64 {
	if t < 0 {
		return 0
	}
	part := func(d time.Duration) float64 {
		return used.CDF(float64(d) / float64(max(h.Lease, 1)) * learned.WholeLease)
	}
	past := math.Min(part(h.Age), 1-1e-9)
	return math.Max(0, (part(h.Age+t)-past)/(1-past))
}

func (f Facts) describeBasis() (string, int) {
	var parts []string
	fewest := math.MaxInt
	rests := func(on string, seen int) {
		if seen == 0 {
			on = BasisPrior
		}
		fewest = min(fewest, seen)
		if !slices.Contains(parts, on) {
			parts = append(parts, on)
		}
	}
	if f.Starts > 0 || slices.ContainsFunc(f.Places, func(p Place) bool { return p.Room > 0 }) {
		parts = append(parts, BasisCalendar)
	}
	if slices.ContainsFunc(f.Places, func(p Place) bool { return len(p.Holds) > 0 }) {
		rests(BasisLeases, len(f.Leases.Seen))
	}
	if f.Stock != nil {
		parts = append(parts, BasisStock)
	}
	if len(f.Ages)+f.Missing > 0 {
		rests(BasisBoots, len(f.Boot.Seen))
	}
	if len(parts) == 0 {
		return BasisNow, 0
	}
	if fewest == math.MaxInt {
		fewest = 0
	}
	return strings.Join(parts, "+"), fewest
}
