package main

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/internal/clock"
)

// steady is a clock that goes on from the machine's as it was when the program began, and that nobody sets: whoever
// corrects the machine's clock, by a day perhaps, neither lengthens nor shortens what the daemon waits for. It goes on
// while the machine is suspended, as leases do.
type steady struct {
	// Booted is when the machine booted, by this clock.
	Booted time.Time
	uptime func() time.Duration
}

// newSteady returns the clock of a machine whose kernel says for how long it has been up.
func newSteady(wall clock.Clock, uptime func() time.Duration) steady {
	return steady{Booted: wall.Now().Add(-uptime()).Truncate(time.Microsecond), uptime: uptime}
}

// Now implements clock.Clock.
func (s steady) Now() time.Time { return s.Booted.Add(s.uptime()).Truncate(time.Microsecond) }

// machineUptime is how long the machine has been up, suspended or not.
func machineUptime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // there is no kernel without it
	return time.Duration(t.Nano())
}
