package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/plan"
)

func TestNothingSeenIsThePrior(t *testing.T) {
	t.Parallel()
	b := plan.BootTimes{Prior50: 2 * time.Minute, Prior95: 4 * time.Minute}
	require.Equal(t, 2*time.Minute, b.P50())
	require.Equal(t, 4*time.Minute, b.P95())
	require.Equal(t, 5*time.Minute, plan.Lead(b, plan.Policy{}), "a minute of guard")
	require.Equal(t, 4*time.Minute+time.Second, plan.Lead(b, plan.Policy{Guard: time.Second}))
}

func TestThePriorFades(t *testing.T) {
	t.Parallel()
	b := plan.BootTimes{Prior50: 10 * time.Minute, Prior95: 10 * time.Minute}
	last := b.P50()
	for range 64 {
		b = b.Learn(time.Minute)
		require.Less(t, b.P50(), last, "each boot counts")
		last = b.P50()
	}
	require.Less(t, last, 2*time.Minute)
	require.Equal(t, last, b.Learn(time.Minute).P50(), "64 are remembered")
}

func TestADriftIsFollowed(t *testing.T) {
	t.Parallel()
	b := plan.BootTimes{Prior50: time.Minute, Prior95: time.Minute}
	for range 500 {
		b = b.Learn(time.Minute)
	}
	for range 10 {
		b = b.Learn(9 * time.Minute)
	}
	require.Greater(t, b.P95(), 8*time.Minute, "a slow tail shows in the lead at once")
	require.Equal(t, time.Minute, b.P50())
	for range 54 {
		b = b.Learn(9 * time.Minute)
	}
	require.Greater(t, b.P50(), 8*time.Minute)
	require.Len(t, b.Seen, 64)
}

func TestBootTimesStayWithinWhatIsKnown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Map(rapid.IntRange(1, 7200), func(n int) time.Duration { return time.Duration(n) * time.Second })
		b := plan.BootTimes{Prior50: seconds.Draw(t, "p50")}
		b.Prior95 = b.Prior50 + seconds.Draw(t, "p95")
		low, high := b.Prior50, b.Prior95
		for _, d := range rapid.SliceOfN(seconds, 0, 100).Draw(t, "boots") {
			before, seen := b, slices.Clone(b.Seen)
			b = b.Learn(d)
			require.Equal(t, seen, slices.Clone(before.Seen), "learning returns a new value")
			low, high = min(low, d), max(high, d)
		}
		require.LessOrEqual(t, b.P50(), b.P95())
		require.GreaterOrEqual(t, b.P50(), low)
		require.LessOrEqual(t, b.P95(), high)
		slower := b
		slower.Seen = nil
		for _, d := range b.Seen {
			slower.Seen = append(slower.Seen, d+time.Second)
		}
		require.GreaterOrEqual(t, slower.P95(), b.P95(), "slower boots never shorten the lead")
	})
}
