// Package clock is the only way in which wall time enters the program.
//
// Pure code (core) takes time as an argument and never sees a Clock. Everything
// else that needs to know the time takes a Clock, so that a test or the
// simulator can own it.
package clock

import (
	"sync"
	"time"
)

// Clock tells the current time in UTC. Implementations are safe for
// concurrent use.
type Clock interface {
	Now() time.Time
}

// System is the machine's clock, in UTC and cut to microseconds: the
// resolution of every stored time, so that a value read back equals the value
// written.
type System struct{}

// Now returns the machine's time.
func (System) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Manual is a clock that moves only when it is told to. The zero value stands
// at the zero time; it is safe for concurrent use.
type Manual struct {
	mu  sync.Mutex
	now time.Time
}

// NewManual returns a clock that stands at t.
func NewManual(t time.Time) *Manual { return &Manual{now: t.UTC().Truncate(time.Microsecond)} }

// Now returns the time the clock stands at.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock by d, which may be negative, and returns the new time.
func (m *Manual) Advance(d time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d).Truncate(time.Microsecond)
	return m.now
}

// Set puts the clock at t.
func (m *Manual) Set(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = t.UTC().Truncate(time.Microsecond)
}
