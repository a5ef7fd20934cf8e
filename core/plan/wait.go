package plan

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Bases of an estimate; where several apply they are joined by a plus sign.
const (
	BasisNow      = "now"        // nothing is waited for
	BasisBoots    = "boot_times" // boots of this pool
	BasisPrior    = "prior"      // what was assumed before anything was seen
	BasisCalendar = "calendar"   // bookings' ends: exact if nobody leaves early
	BasisLeases   = "lease_use"  // how early leases of this pool ended
)

// WaitFacts is what somebody waits for: first a place, then nodes.
type WaitFacts struct {
	Room    time.Duration   `json:"room_ns,omitempty"`    // until the calendar has a place if nobody leaves early
	Holds   []Hold          `json:"holds,omitempty"`      // leases that must end for that place
	Ages    []time.Duration `json:"ages_ns,omitempty"`    // since each node that is on its way was asked for
	Missing int             `json:"missing,omitempty"`    // nodes that are still to be asked for
	Blocked time.Duration   `json:"blocked_ns,omitempty"` // until they may be
	Boot    BootTimes       `json:"boot"`
	Leases  LeaseUse        `json:"leases"`
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

// Wait estimates how long a wait will still be. What has lasted for some time
// already is estimated from those observations only that lasted longer; where
// several things must all end, each must by the quantile's root, as if they
// were independent. The parts of a wait are added quantile by quantile, which
// is wide rather than narrow.
func Wait(f WaitFacts) Estimate {
	place, nodes := f.place(), f.nodes()
	e := Estimate{}
	e.P10, e.P50, e.P90 = place(0.1)+nodes(0.1), place(0.5)+nodes(0.5), place(0.9)+nodes(0.9)
	e.Basis, e.Samples = f.basis()
	return e
}

// wait is the quantile function of a wait.
type wait func(q float64) time.Duration

func (f WaitFacts) nodes() wait {
	n := len(f.Ages) + f.Missing
	if n == 0 {
		return func(float64) time.Duration { return 0 }
	}
	boots := f.Boot.curve()
	return func(q float64) time.Duration {
		each, longest := math.Pow(q, 1/float64(n)), time.Duration(0)
		for _, age := range f.Ages {
			longest = max(longest, boots.left(age, each))
		}
		if f.Missing > 0 {
			longest = max(longest, f.Blocked+boots.left(0, each))
		}
		return longest
	}
}

// place is when the leases that stand in the way have ended. Beyond Room nothing
// is waited for: that is when they must have.
func (f WaitFacts) place() wait {
	if len(f.Holds) == 0 {
		return func(float64) time.Duration { return f.Room }
	}
	used := f.Leases.curve()
	return func(q float64) time.Duration {
		each, longest := math.Pow(q, 1/float64(len(f.Holds))), time.Duration(0)
		for _, h := range f.Holds {
			past := float64(h.Age) / float64(max(h.Lease, 1))
			left := used.left(time.Duration(past*whole), each)
			longest = max(longest, time.Duration(float64(left)/whole*float64(h.Lease)))
		}
		return min(longest, f.Room)
	}
}

func (f WaitFacts) basis() (string, int) {
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
	if f.Room > 0 {
		parts = append(parts, BasisCalendar)
	}
	if len(f.Holds) > 0 {
		rests(BasisLeases, len(f.Leases.Seen))
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
