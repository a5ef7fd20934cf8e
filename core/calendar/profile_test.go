package calendar_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func at(hour int) time.Time { return monday.Add(time.Duration(hour) * time.Hour) }

func hours(from, to int) calendar.Interval { return calendar.Interval{Start: at(from), End: at(to)} }

func TestIntervalsAreHalfOpen(t *testing.T) {
	t.Parallel()
	nine := hours(9, 12)
	require.True(t, nine.Contains(at(9)))
	require.False(t, nine.Contains(at(12)))
	require.False(t, nine.Overlaps(hours(12, 13)), "one ends as the other starts")
	require.False(t, hours(12, 13).Overlaps(nine))
	require.True(t, nine.Overlaps(hours(11, 13)))
	require.True(t, nine.Overlaps(hours(10, 11)))
	require.Equal(t, 3*time.Hour, nine.Length())
	require.Equal(t, hours(10, 12), nine.From(at(10)))
	require.Equal(t, nine, nine.From(at(8)))
	require.False(t, nine.From(at(12)).Valid(), "nothing is left")
	require.False(t, hours(9, 9).Valid())
	require.False(t, hours(9, 8).Valid())
}

func TestProfileByHand(t *testing.T) {
	t.Parallel()
	var p calendar.Profile
	require.Zero(t, p.Peak(hours(0, 24)))
	p.Add(hours(9, 12), 4)
	p.Add(hours(12, 14), 4) // the same level goes on: one step
	p.Add(hours(10, 11), 3)
	p.Add(hours(15, 15), 9) // empty
	p.Add(hours(16, 15), 9) // backwards
	require.Equal(t, []time.Time{at(9), at(10), at(11), at(14)}, p.Changes())
	for hour, want := range map[int]int{8: 0, 9: 4, 10: 7, 11: 4, 13: 4, 14: 0, 15: 0} {
		require.Equal(t, want, p.At(at(hour)), "at %d", hour)
	}
	require.Equal(t, 7, p.Peak(hours(0, 24)))
	require.Equal(t, 4, p.Peak(hours(11, 24)), "the higher step ends where the interval starts")
	require.Equal(t, 4, p.Peak(hours(9, 10)), "and starts where the interval ends")
	require.Zero(t, p.Peak(hours(14, 24)))
	require.Zero(t, p.Peak(hours(10, 10)))
}

type entry struct {
	iv calendar.Interval
	n  int
}

func drawEntries(t *rapid.T, label string) []entry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) entry {
		from := rapid.IntRange(0, 30).Draw(t, "from")
		return entry{hours(from, from+rapid.IntRange(-1, 10).Draw(t, "length")), rapid.IntRange(-3, 8).Draw(t, "n")}
	}), 0, 12).Draw(t, label)
}

func TestAddAndRemoveRestoreTheProfile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p, again calendar.Profile
		kept, passing := drawEntries(t, "kept"), drawEntries(t, "passing")
		for _, e := range kept {
			p.Add(e.iv, e.n)
			again.Add(e.iv, e.n)
		}
		for _, e := range passing {
			p.Add(e.iv, e.n)
		}
		for _, e := range rapid.Permutation(passing).Draw(t, "order") {
			p.Add(e.iv, -e.n)
		}
		require.Equal(t, again.Changes(), p.Changes())
		for hour := range 45 {
			require.Equal(t, again.At(at(hour)), p.At(at(hour)))
		}
	})
}

func TestPeakEqualsARecount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p calendar.Profile
		entries := drawEntries(t, "entries")
		for _, e := range entries {
			p.Add(e.iv, e.n)
		}
		from := rapid.IntRange(-2, 40).Draw(t, "from")
		to := rapid.IntRange(-2, 45).Draw(t, "to")
		levelAt := func(when time.Time) int {
			sum := 0
			for _, e := range entries {
				if e.iv.Contains(when) {
					sum += e.n
				}
			}
			return sum
		}
		want := 0
		for hour := from; hour < to; hour++ {
			level := levelAt(at(hour))
			require.Equal(t, level, p.At(at(hour)))
			if hour == from {
				want = level
			}
			want = max(want, level)
		}
		require.Equal(t, want, p.Peak(hours(from, to)))
	})
}
