package learned

import (
	"math"
	"time"
)

// Supply is what a pool remembers of whether its provider gives what it is asked
// for: the latest stock-out with its back-off, the chances by the hour of the
// day, and how many nodes were asked for and given up lately. It is a value: its
// methods return what it is afterwards.
type Supply struct {
	BlockedUntil time.Time // no node is asked for before: the provider had nothing
	Failures     int       // nodes in a row that were asked for and never became ready
	Blocks       int       // blocks in a row; each is twice as long as the one before
	Hours        []Odds    // by the hour of the day, UTC; empty until something is known
	Created      Window    // nodes that were asked for and have not served anybody
	Removed      Window    // nodes that were given up because nobody needed them
	// Unfit is what was wrong with the last machines that did not pass the health
	// gate, a code, and UnfitInRow how many in a row had it; see Stopped.
	Unfit      string
	UnfitInRow int
}

// Odds is a Beta posterior's counts of nodes that were given and refused. They
// fade with the half-life of fadeOdds: supply of one season says little of the
// next.
type Odds struct {
	Given, Refused float64
	At             time.Time // when the counts were last faded
}

const (
	fadeOdds = 14 * 24 * time.Hour
	// MaxBlocks is how often a block doubles: the longest is 16 times the first.
	MaxBlocks = 4

	// Pseudo-counts of the priors: of the pool before anything is known, and of
	// an hour as the pool's mean.
	priorGiven, priorRefused = 1.8, 0.2
	hourWeight               = 4
)

func (o Odds) fadeTo(now time.Time) Odds {
	if age := now.Sub(o.At); age > 0 && !o.At.IsZero() {
		f := math.Exp2(-age.Hours() / fadeOdds.Hours())
		o.Given, o.Refused = o.Given*f, o.Refused*f
	}
	o.At = now
	return o
}

// Odds is the chance that a node asked for at t is given: the mean of the Beta
// posterior of the hour of the day, whose prior is that of the whole day.
func (s Supply) Odds(t time.Time) float64 {
	given, refused := priorGiven, priorRefused
	for _, h := range s.Hours {
		h = h.fadeTo(t)
		given, refused = given+h.Given, refused+h.Refused
	}
	day := given / (given + refused)
	if len(s.Hours) == 0 {
		return day
	}
	h := s.Hours[t.UTC().Hour()].fadeTo(t)
	return (h.Given + hourWeight*day) / (h.Given + h.Refused + hourWeight)
}

// Ready returns the supply after a node became ready: whatever was wrong is over.
func (s Supply) Ready(now time.Time) Supply {
	s = s.countOutcome(now, 1, 0)
	return s.clearFailures()
}

// Failed returns the supply after a node that was asked for at asked was refused,
// or given up before it was ready. Nothing is asked for during ttl, twice as long
// for each time in a row, up to 16 times; refusals of nodes that were asked for
// together count once for that.
func (s Supply) Failed(asked, now time.Time, ttl time.Duration) Supply {
	s = s.countOutcome(now, 0, 1)
	s.Failures++
	if s.BlockedUntil.After(now) && s.Blocks > 0 && asked.Before(s.BlockedUntil.Add(-ttl<<min(s.Blocks-1, MaxBlocks))) {
		return s
	}
	s.BlockedUntil = now.Add(ttl << min(s.Blocks, MaxBlocks))
	s.Blocks++
	return s
}

const (
	// stopAfter is how many machines in a row with one fault are enough: the next
	// would have it, too, and cost as much.
	stopAfter = 2
	// untilRetried is as long as for ever, and a time that can be stored.
	untilRetried = 100 * 365 * 24 * time.Hour
)

// FailedGate is Failed for a machine that did not pass the health gate because of
// a fault that its kind has. The second in a row stops the source: nothing is
// asked of it until Learned.RetryStopped.
func (s Supply) FailedGate(asked, now time.Time, ttl time.Duration, fault string) Supply {
	s = s.Failed(asked, now, ttl)
	if s.Unfit != fault {
		s.Unfit, s.UnfitInRow = fault, 0
	}
	if s.UnfitInRow++; s.Stopped() != "" {
		s.BlockedUntil = now.Add(untilRetried)
	}
	return s
}

// Stopped is the fault because of which nothing is asked for any more; empty
// where something is.
func (s Supply) Stopped() string {
	if s.UnfitInRow < stopAfter {
		return ""
	}
	return s.Unfit
}

// clearFailures returns the supply when whatever was wrong is over.
func (s Supply) clearFailures() Supply {
	s.Failures, s.Blocks, s.BlockedUntil, s.Unfit, s.UnfitInRow = 0, 0, time.Time{}, "", 0
	return s
}

func (s Supply) countOutcome(now time.Time, given, refused float64) Supply {
	hours := make([]Odds, 24)
	copy(hours, s.Hours)
	h := &hours[now.UTC().Hour()]
	*h = h.fadeTo(now)
	h.Given, h.Refused = round3(h.Given+given), round3(h.Refused+refused)
	s.Hours = hours
	return s
}

// round3 keeps what is stored short.
func round3(x float64) float64 { return math.Round(x*1000) / 1000 }

// Breaker is the state of a pool's circuit breaker.
type Breaker string

// The states of a breaker (Nygard, "Release It!", 2nd ed., 2018, ch. 5).
const (
	Closed   Breaker = "closed"    // nodes are asked for
	Open     Breaker = "open"      // none is: too many in a row never became ready
	HalfOpen Breaker = "half_open" // one is asked for; what becomes of it decides
)

// Breaker returns the state at now: it opens at after failures in a row, and is
// half open when the block of the last of them is over.
func (s Supply) Breaker(after int, now time.Time) Breaker {
	switch {
	case s.Failures < after:
		return Closed
	case s.BlockedUntil.After(now):
		return Open
	default:
		return HalfOpen
	}
}
