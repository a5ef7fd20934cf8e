package auth

import (
	"math"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
)

// Rate is how often something may happen. A zero Rate never lets anything
// happen; one with a negative PerSecond does not limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// maxBuckets bounds the memory that strangers can make a Limiter use.
const maxBuckets = 100_000

// Limiter counts by key with one token bucket each: a bucket holds Burst tokens,
// fills at PerSecond, and each event takes one. It is safe for concurrent use.
type Limiter struct {
	rate  Rate
	clock clock.Clock

	mu      sync.Mutex
	buckets map[string]bucket
}

// bucket holds what was left at a time; what has come in since is worked out.
type bucket struct {
	tokens float64
	at     time.Time
}

// NewLimiter returns a limiter whose buckets are full.
func NewLimiter(r Rate, c clock.Clock) *Limiter {
	return &Limiter{rate: r, clock: c, buckets: map[string]bucket{}}
}

// Allow takes a token for key. When there is none it returns false and how long
// until there is one.
func (l *Limiter) Allow(key string) (bool, time.Duration) {
	if l.rate.PerSecond < 0 {
		return true, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.refill(key)
	if b.tokens < 1 {
		return false, l.waitFor(b)
	}
	b.tokens--
	l.buckets[key] = b
	return true, 0
}

// Check is Allow without taking the token.
func (l *Limiter) Check(key string) (bool, time.Duration) {
	if l.rate.PerSecond < 0 {
		return true, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.refill(key); b.tokens < 1 {
		return false, l.waitFor(b)
	}
	return true, 0
}

func (l *Limiter) refill(key string) bucket {
	now := l.clock.Now()
	b, ok := l.buckets[key]
	if !ok {
		if len(l.buckets) >= maxBuckets {
			l.sweepFull(now)
		}
		return bucket{tokens: float64(l.rate.Burst), at: now}
	}
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.tokens = math.Min(float64(l.rate.Burst), b.tokens+passed*l.rate.PerSecond)
		b.at = now
	}
	return b
}

// sweepFull forgets the buckets that are full again: a new one is the same. If every
// one is in use, all are forgotten, since memory must not grow.
func (l *Limiter) sweepFull(now time.Time) {
	for key, b := range l.buckets {
		if b.tokens+now.Sub(b.at).Seconds()*l.rate.PerSecond >= float64(l.rate.Burst) {
			delete(l.buckets, key)
		}
	}
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}

func (l *Limiter) waitFor(b bucket) time.Duration {
	if l.rate.PerSecond == 0 {
		return time.Hour
	}
	return time.Duration((1 - b.tokens) / l.rate.PerSecond * float64(time.Second))
}
