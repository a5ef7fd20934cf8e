package quota_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/quota"
)

func TestPartOfASecondIsAWholeOne(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		length time.Duration
		gpus   int
		want   int64
	}{
		{2 * time.Hour, 3, 3 * 7200}, {time.Second, 8, 8}, {time.Second + 1, 8, 16}, {1, 1, 1}, {time.Second - 1, 1, 1},
		{0, 8, 0}, {-time.Hour, 8, 0}, {time.Hour, 0, 0},
	} {
		w := calendar.Interval{Start: monday, End: monday.Add(tc.length)}
		require.Equal(
			t,
			quota.Spend{Cost: 7, GPUSeconds: tc.want},
			quota.SpendOf(w, tc.gpus, 7),
			"%d GPUs for %s",
			tc.gpus,
			tc.length,
		)
	}
}

// drawTime draws instants of two centuries, midnights and turns of months more
// often than chance.
func drawTime(t *rapid.T, name string) time.Time {
	day := time.Date(
		rapid.IntRange(1900, 2100).Draw(t, name+" year"),
		time.Month(rapid.IntRange(1, 12).Draw(t, name+" month")),
		rapid.IntRange(1, 31).Draw(t, name+" day"),
		0,
		0,
		0,
		0,
		time.UTC,
	)
	return day.Add(
		rapid.SampledFrom([]time.Duration{0, 1, time.Second, 12 * time.Hour, 24*time.Hour - time.Second, -1}).
			Draw(t, name+" rest"),
	)
}

// What is spent at one instant is found at another one exactly if both are of the
// same period, and Days names the day by its start.
func TestSpendingIsFoundInItsPeriodAlone(t *testing.T) {
	t.Parallel()
	one := quota.Spend{Cost: 1, GPUSeconds: 2}
	rapid.Check(t, func(t *rapid.T) {
		spent, asked := drawTime(t, "spent"), drawTime(t, "asked")
		if rapid.Bool().Draw(t, "near") {
			asked = spent.AddDate(0, rapid.IntRange(-1, 1).Draw(t, "months"), rapid.IntRange(-1, 1).Draw(t, "days"))
		}
		var c quota.Commitments
		c.Spend(spent, one)
		require.Equal(t, []time.Time{spent.Truncate(24 * time.Hour)}, c.Days())
		for _, p := range []quota.Period{quota.PerDay, quota.PerMonth} {
			start, next := p.Start(spent), p.Next(spent)
			require.False(t, spent.Before(start))
			require.True(t, spent.Before(next))
			want := quota.Spend{}
			if !asked.Before(start) && asked.Before(next) {
				want = one
			}
			require.Equal(t, want, c.In(p, asked), "%s: spent %s, asked %s", p, spent, asked)
		}
	})
}

func TestDemandOfAnUnequalShape(t *testing.T) {
	t.Parallel()
	p := capacity.Pool{PerNode: 8, MemoryMiB: 10, NodeCPUs: 100, NodeMemoryMiB: 800}
	require.Equal(
		t,
		quota.Vector{11, 110, 100 + 38, 800 + 300, 1},
		quota.Demand(p, capacity.Shape{Nodes: 2, PerNode: 8, Short: 5}),
	)
	require.Equal(t, quota.Vector{1, 10, 13, 100, 1}, quota.Demand(p, capacity.Shape{Nodes: 1, PerNode: 1}))
	p.PerNode = 0
	require.Equal(
		t,
		quota.Vector{8, 80, 0, 0, 1},
		quota.Demand(p, capacity.Shape{Nodes: 1, PerNode: 8}),
		"no share of nothing",
	)
}
