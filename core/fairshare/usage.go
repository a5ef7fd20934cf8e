// Package fairshare computes how much each tenant has had lately: weighted
// dominant shares of exponentially decayed use, with an entry penalty against
// bursts. Speculative reservations that nobody claimed are charged by how well
// the tenant's predictions have come true. Package priority orders requests for
// GPUs by these shares.
package fairshare

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/core/quota"
)

// Policy is how use is charged and forgotten.
type Policy struct {
	HalfLife time.Duration // after this long, use counts half; 0 or less: 7 days
	// Entry is the time that an admission is charged for at once, so that a burst
	// counts before it has run. What was charged is forgotten with Entry as its
	// half-life, while the real use is counted; 0 or less: no penalty. It is the
	// entry penalty of Kueue's admission fair sharing (KEP-4136).
	Entry time.Duration
	// MaxIdle is how many times the idle time of a tenant's speculative reservations
	// counts when none of them comes true; at most 1: always once.
	MaxIdle float64
}

// Default is a week's half-life, an hour's entry penalty, and idle speculative
// reservations that count up to four times.
func Default() Policy { return Policy{HalfLife: defaultHalfLife, Entry: time.Hour, MaxIdle: 4} }

const defaultHalfLife = 7 * 24 * time.Hour

func (p Policy) halfLife() time.Duration {
	if p.HalfLife <= 0 {
		return defaultHalfLife
	}
	return p.HalfLife
}

// Amounts is an amount of each resource, in the order of quota.Vector.
type Amounts [len(quota.Vector{})]float64

// Usage is what one tenant has used of one capacity, as of At. The zero Usage is
// nothing. It is a value: it can be compared, stored and sent as JSON.
type Usage struct {
	At      time.Time
	Held    Amounts // resource-seconds in use, decayed
	Idle    Amounts // resource-seconds of speculative reservations before anybody came, as charged, decayed
	Entered Amounts // resource-seconds charged for entry, decayed
	// Expected and Claimed measure calibration: the GPU-seconds that the tenant's
	// speculative reservations were expected to be claimed for, each by its stated
	// probability, and those that were claimed; decayed.
	Expected float64
	Claimed  float64
}

// Advance returns the usage as of now. A now before At changes nothing.
func (p Policy) Advance(u Usage, now time.Time) Usage {
	if u.At.IsZero() {
		u.At = now
		return u
	}
	passed := now.Sub(u.At)
	if passed <= 0 {
		return u
	}
	keep := remainingShare(passed, p.halfLife())
	entry := remainingShare(passed, max(p.Entry, time.Nanosecond))
	for r := range u.Held {
		u.Held[r] *= keep
		u.Idle[r] *= keep
		u.Entered[r] *= entry
	}
	u.Expected *= keep
	u.Claimed *= keep
	u.At = now
	return u
}

// remainingShare is the part that is not forgotten after d.
func remainingShare(d, halfLife time.Duration) float64 {
	return math.Exp2(-float64(d) / float64(halfLife))
}

// ChargeUse adds what was held over the time d that ends now.
func (p Policy) ChargeUse(u Usage, now time.Time, v quota.Vector, d time.Duration) Usage {
	u = p.Advance(u, now)
	u.Held = u.Held.addWeighted(v, p.decayedLength(d))
	return u
}

// ChargeSpeculative adds what was kept ready, over the time d that ends now, for a
// speculative reservation that nobody had claimed yet. It counts Factor times.
func (p Policy) ChargeSpeculative(u Usage, now time.Time, v quota.Vector, d time.Duration) Usage {
	u = p.Advance(u, now)
	u.Idle = u.Idle.addWeighted(v, p.decayedLength(d)*p.Factor(u))
	return u
}

// ChargeEntry charges an admission of v at once.
func (p Policy) ChargeEntry(u Usage, now time.Time, v quota.Vector) Usage {
	u = p.Advance(u, now)
	u.Entered = u.Entered.addWeighted(v, max(p.Entry, 0).Seconds())
	return u
}

// Without is what is left of the held and the entered of u without a part of it that somebody had; both as of the same
// instant. What was kept ready speculatively is nobody's part.
func (u Usage) Without(part Usage) Usage {
	left := Usage{At: u.At}
	for r := range u.Held {
		left.Held[r] = max(u.Held[r]-part.Held[r], 0)
		left.Entered[r] = max(u.Entered[r]-part.Entered[r], 0)
	}
	return left
}

// Outcome notes what became of a speculative reservation of so many GPU-seconds that
// was stated with a probability. Larger ones count more, so that many small ones that
// come true do not pay for a large one that does not.
func (p Policy) Outcome(u Usage, now time.Time, probability, gpuSeconds float64, claimed bool) Usage {
	u = p.Advance(u, now)
	gpuSeconds = max(gpuSeconds, 0)
	u.Expected += min(max(probability, 0), 1) * gpuSeconds
	if claimed {
		u.Claimed += gpuSeconds
	}
	return u
}

// decayedLength is the decayed length, in seconds, of a time d that ends now.
func (p Policy) decayedLength(d time.Duration) float64 {
	return p.timeConstant() * (1 - remainingShare(max(d, 0), p.halfLife()))
}

// timeConstant is the weight, in seconds, of having used something for ever.
func (p Policy) timeConstant() float64 { return p.halfLife().Seconds() / math.Ln2 }

func (a Amounts) addWeighted(v quota.Vector, seconds float64) Amounts {
	for r := range a {
		a[r] += float64(v[r]) * seconds
	}
	return a
}
