package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
)

// Whoever sets the machine's clock, by a day perhaps, changes nothing of what the daemon waits for.
func TestTheDaemonsClockIsNotSet(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	wall, up := clock.NewManual(begin), time.Hour
	c := newSteady(wall, func() time.Duration { return up })
	require.Equal(t, begin, c.Now())
	require.Equal(t, begin.Add(-time.Hour), c.Booted)
	for _, jump := range []time.Duration{24 * time.Hour, -72 * time.Hour} {
		wall.Advance(jump)
		up += time.Second
	}
	require.Equal(t, begin.Add(2*time.Second), c.Now())
	before := machineUptime()
	require.Positive(t, before)
	require.GreaterOrEqual(t, machineUptime(), before)
}
