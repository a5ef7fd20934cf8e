package learned_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/learned"
)

func TestNothingSeenIsThePrior(t *testing.T) {
	t.Parallel()
	b := learned.BootTimes{Prior50: 2 * time.Minute, Prior95: 4 * time.Minute}
	require.Equal(t, 2*time.Minute, b.P50())
	require.Equal(t, 4*time.Minute, b.P95())
}

func TestThePriorFades(t *testing.T) {
	t.Parallel()
	b := learned.BootTimes{Prior50: 10 * time.Minute, Prior95: 10 * time.Minute}
	last := b.P50()
	for range 64 {
		b = b.Learn(time.Minute)
		require.Less(t, b.P50(), last, "each boot counts")
		last = b.P50()
	}
	require.Less(t, last, 2*time.Minute)
	require.Equal(t, last, b.Learn(time.Minute).P50(), "64 are remembered")
}

// noisyBoots is a source of boots around a median, as providers have them.
func noisyBoots(seed uint64, median time.Duration) func() time.Duration {
	chance := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration {
		return time.Duration(float64(median) * math.Exp(0.2*chance.NormFloat64()))
	}
}

func TestAProviderTwiceAsSlowIsFollowedWithinTenBoots(t *testing.T) {
	t.Parallel()
	const followed = 10
	for seed := range uint64(50) {
		b := learned.BootTimes{Prior50: time.Minute, Prior95: 2 * time.Minute}
		steady, slow := noisyBoots(seed, 2*time.Minute), noisyBoots(seed+1000, 4*time.Minute)
		for range 200 {
			b = b.Learn(steady())
		}
		require.Less(t, b.P95(), 4*time.Minute, "seed %d", seed)
		for range followed {
			b = b.Learn(slow())
		}
		require.InDelta(t, (4 * time.Minute).Seconds(), b.P50().Seconds(), 60, "seed %d: the old boots are forgotten",
			seed)
		require.Greater(t, b.P95(), 4*time.Minute, "seed %d", seed)
		for range 2 * followed { // fewer boots are left to compare with
			b = b.Learn(steady())
		}
		require.Less(t, b.P50(), 3*time.Minute, "seed %d: and so are the slow ones", seed)
	}
}

func TestNoiseIsNotAChange(t *testing.T) {
	t.Parallel()
	forgotten := 0
	for seed := range uint64(20) {
		b, source := learned.BootTimes{}, noisyBoots(seed, 2*time.Minute)
		for range 300 {
			before := len(b.Seen)
			if b = b.Learn(source()); len(b.Seen) < before {
				forgotten++
			}
		}
	}
	require.LessOrEqual(t, forgotten, 12, "of 6,000 boots of a steady source")
	b := learned.BootTimes{}
	for range 64 {
		b = b.Learn(time.Minute)
	}
	b = b.Learn(100 * time.Hour)
	require.Len(t, b.Seen, 64, "one boot that hung says nothing about the next")
	require.Equal(t, time.Minute, b.P50())
}

func TestTheRankIsTheOneThatCovers(t *testing.T) {
	t.Parallel()
	b := learned.BootTimes{Faded: 64, Seen: []time.Duration{3 * time.Minute, time.Minute}}
	require.InDelta(t, 120, b.P50().Seconds(), 2, "half way between two")
	require.Equal(t, 3*time.Minute, b.P95(), "too few for a 95th percentile: the slowest")
	covered, asked := 0, 0
	for seed := range uint64(40) {
		b, source := learned.BootTimes{}, noisyBoots(seed, 2*time.Minute)
		for n := range 200 {
			d := source()
			if n >= 30 {
				asked++
				if d <= b.P95() {
					covered++
				}
			}
			b = b.Learn(d)
		}
	}
	require.InDelta(t, 0.95, float64(covered)/float64(asked), 0.015)
}

func TestBootTimesStayWithinWhatIsKnown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Map(rapid.IntRange(1, 7200),
			func(n int) time.Duration { return time.Duration(n) * time.Second })
		b := learned.BootTimes{Prior50: seconds.Draw(t, "p50")}
		b.Prior95 = b.Prior50 + seconds.Draw(t, "p95")
		low, high := b.Prior50, b.Prior95
		for _, d := range rapid.SliceOfN(seconds, 0, 100).Draw(t, "boots") {
			before, seen := b, slices.Clone(b.Seen)
			b = b.Learn(d)
			require.Equal(t, seen, slices.Clone(before.Seen), "learning returns a new value")
			require.LessOrEqual(t, len(b.Seen), 64)
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
