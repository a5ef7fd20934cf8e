package quota_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/quota"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func hours(from, to int) calendar.Interval {
	return calendar.Interval{Start: monday.Add(time.Duration(from) * time.Hour), End: monday.Add(time.Duration(to) * time.Hour)}
}

func TestExcessIsTheWorstInstant(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	c.Add(hours(9, 12), 4, 0)
	c.Add(hours(11, 14), 3, 0)
	for _, tc := range []struct {
		name  string
		iv    calendar.Interval
		n     int
		limit int
		want  int
	}{
		{"exactly the limit", hours(8, 16), 1, 8, 0},
		{"one over", hours(8, 16), 2, 8, 1},
		{"only the first", hours(9, 11), 4, 8, 0},
		{"after the edge", hours(14, 16), 8, 8, 0},
		{"nothing allowed", hours(14, 16), 1, 0, 1},
		{"room left", hours(12, 14), 2, 8, -3},
	} {
		require.Equal(t, tc.want, quota.Excess(tc.limit, &c.GPUs, tc.iv, tc.n), tc.name)
	}
}

func TestCostFallsOnTheDayOfTheStart(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	require.Zero(t, c.On(monday), "nothing is committed yet")
	c.Add(hours(23, 30), 1, 5*gpu.USD)
	require.Equal(t, 5*gpu.USD, c.On(monday.Add(12*time.Hour)))
	require.Zero(t, c.On(monday.Add(24*time.Hour)))

	tokyo := time.FixedZone("UTC+9", 9*60*60)
	require.Equal(t, monday, quota.Day(time.Date(2026, 3, 3, 8, 59, 0, 0, tokyo)), "a day is a UTC day")
	require.Equal(t, monday.Add(24*time.Hour), quota.Day(time.Date(2026, 3, 3, 9, 0, 0, 0, tokyo)))
}

func TestCommitmentsCancelOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c quota.Commitments
		type entry struct {
			iv   calendar.Interval
			n    int
			cost gpu.MicroUSD
		}
		var all []entry
		for range rapid.IntRange(1, 10).Draw(t, "entries") {
			from := rapid.IntRange(0, 100).Draw(t, "from")
			e := entry{hours(from, from+rapid.IntRange(1, 40).Draw(t, "length")), rapid.IntRange(1, 9).Draw(t, "n"), gpu.MicroUSD(rapid.Int64Range(0, 1e12).Draw(t, "cost"))}
			all = append(all, e)
			c.Add(e.iv, e.n, e.cost)
		}
		for _, e := range all {
			c.Add(e.iv, -e.n, -e.cost)
		}
		require.Empty(t, c.GPUs.Changes())
		for day := range c.Days {
			require.Zero(t, c.On(day))
		}
	})
}
