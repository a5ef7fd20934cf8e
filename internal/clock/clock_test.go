package clock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
)

func TestSystemIsUTCInMicroseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1_234_567 * time.Nanosecond) // of the bubble's own time
		now := clock.System{}.Now()
		require.Equal(t, time.UTC, now.Location())
		require.Equal(t, time.Date(2000, 1, 1, 0, 0, 0, 1_234_000, time.UTC), now)
	})
}

func TestManualMovesOnlyWhenTold(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 2, 9, 0, 0, 1_999, time.FixedZone("UTC+1", 3600))
	m := clock.NewManual(start)
	want := time.Date(2026, 3, 2, 8, 0, 0, 1_000, time.UTC)
	require.Equal(t, want, m.Now())
	require.Equal(t, want, m.Now())
	require.Equal(t, want.Add(time.Hour), m.Advance(time.Hour))
	require.Equal(t, want, m.Advance(-time.Hour))
	require.Equal(t, want, m.Advance(999*time.Nanosecond), "less than its resolution")
	m.Set(start.Add(time.Minute))
	require.Equal(t, want.Add(time.Minute), m.Now())

	var zero clock.Manual
	require.True(t, zero.Now().IsZero())
}

func TestManualIsSharedSafely(t *testing.T) {
	t.Parallel()
	m := clock.NewManual(time.Unix(0, 0))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				m.Advance(time.Second)
				m.Now()
			}
		})
	}
	wg.Wait()
	require.Equal(t, time.Unix(8000, 0).UTC(), m.Now())
}
