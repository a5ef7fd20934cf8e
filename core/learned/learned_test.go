package learned_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
)

var dawn = time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)

func TestAStockOutIsRememberedTwiceAsLongEachTime(t *testing.T) {
	t.Parallel()
	var s learned.Supply
	now := dawn
	for _, minutes := range []int{3, 6, 12, 24, 48, 48} {
		s = s.Failed(now, now, 3*time.Minute)
		require.Equal(t, time.Duration(minutes)*time.Minute, s.BlockedUntil.Sub(now))
		together := s.Failed(now.Add(-time.Second), now.Add(time.Second), 3*time.Minute)
		require.Equal(t, s.BlockedUntil, together.BlockedUntil, "one that was asked for with it is the same stock-out")
		require.Equal(t, s.Failures+1, together.Failures, "and a failure of its own")
		now = s.BlockedUntil
	}
	require.Equal(t, 6, s.Failures)
	s = s.Ready(now)
	require.Zero(t, s.Failures)
	require.True(t, s.BlockedUntil.IsZero())
	require.Equal(t, now.Add(3*time.Minute), s.Failed(now, now, 3*time.Minute).BlockedUntil,
		"the next is the first again")
}

func TestTheBreaker(t *testing.T) {
	t.Parallel()
	var s learned.Supply
	for range 4 {
		s = s.Failed(dawn, dawn, time.Minute)
	}
	require.Equal(t, learned.Closed, s.Breaker(5, dawn))
	s = s.Failed(dawn, dawn, time.Minute)
	require.Equal(t, learned.Open, s.Breaker(5, dawn))
	require.Equal(t, learned.HalfOpen, s.Breaker(5, s.BlockedUntil))
	require.Equal(t, learned.Closed, s.Ready(dawn).Breaker(5, dawn))
}

func TestOddsAreLearnedByTheHourAndFade(t *testing.T) {
	t.Parallel()
	var s learned.Supply
	require.InDelta(t, 0.9, s.Odds(dawn), 1e-9, "the prior")
	evening := dawn.Add(12 * time.Hour)
	for day := range 10 {
		s = s.Ready(dawn.AddDate(0, 0, day))
		for range 3 {
			at := evening.AddDate(0, 0, day)
			s = s.Failed(at, at, time.Minute)
		}
	}
	last := dawn.AddDate(0, 0, 10)
	require.Greater(t, s.Odds(last), 2*s.Odds(last.Add(12*time.Hour)), "mornings have supply, evenings do not")
	require.Less(t, s.Odds(last.Add(12*time.Hour)), 0.15)
	require.InDelta(t, 0.9, s.Odds(last.AddDate(2, 0, 0)), 0.05, "two years later nothing is known")
}

func TestAWindowCountsWhatSlides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var w learned.Window
		now, length := dawn, 10*time.Minute
		var times []time.Time
		for range rapid.IntRange(0, 60).Draw(r, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(r, "gap")) * time.Second)
			w = w.Add(1, length, now)
			times = append(times, now)
			recent, near := 0, 0
			for _, at := range times {
				if now.Sub(at) < length {
					recent++
				}
				if now.Sub(at) < length+length/64 {
					near++
				}
			}
			require.GreaterOrEqual(r, w.Sum(length, now), recent)
			require.LessOrEqual(r, w.Sum(length, now), near)
			require.LessOrEqual(r, len(w), 66)
			limit := rapid.IntRange(1, 5).Draw(r, "limit")
			if free := w.Below(limit, length, now); free.After(now) {
				require.GreaterOrEqual(r, w.Sum(length, free.Add(-time.Microsecond)), limit)
				require.Less(r, w.Sum(length, free), limit)
			} else {
				require.Less(r, w.Sum(length, now), limit)
			}
		}
		require.Zero(r, w.Sum(length, now.Add(length)))
	})
}

func drawOffering(r *rapid.T, id string) learned.Offering {
	o := learned.Offering{ID: id, Price: money.MicroUSD(rapid.IntRange(0, 50).Draw(r, "price")) * money.USD}
	o.Boot.Prior50 = time.Duration(rapid.IntRange(1, 600).Draw(r, "p50")) * time.Second
	o.Boot.Prior95 = o.Boot.Prior50 + time.Duration(rapid.IntRange(0, 600).Draw(r, "p95"))*time.Second
	for range rapid.IntRange(0, 5).Draw(r, "given") {
		o.Supply = o.Supply.Ready(dawn)
	}
	for range rapid.IntRange(0, 5).Draw(r, "refused") {
		o.Supply = o.Supply.Failed(dawn, dawn, time.Minute)
	}
	return o
}

func TestFailoverOrderIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		offers := []learned.Offering{drawOffering(r, "a"), drawOffering(r, "b"), drawOffering(r, "c")}
		deadline := dawn.Add(time.Duration(rapid.IntRange(0, 1800).Draw(r, "deadline")) * time.Second)
		before := classRank(offers, deadline)
		better := offers[1]
		switch rapid.IntRange(0, 2).Draw(r, "what improves") {
		case 0:
			better.Price /= 2
		case 1:
			better.Boot.Prior50, better.Boot.Prior95 = better.Boot.Prior50/2, better.Boot.Prior95/2
		default:
			better.Supply = better.Supply.Ready(dawn)
		}
		require.LessOrEqual(r, classRank([]learned.Offering{offers[0], better, offers[2]}, deadline), before,
			"what is better never comes later")
		require.Equal(r, before, classRank([]learned.Offering{offers[2], offers[1], offers[0]}, deadline),
			"whatever order they come in")
	})
}

func classRank(offers []learned.Offering, deadline time.Time) int {
	for i, c := range learned.FailoverOrder(offers, deadline, dawn) {
		if c.ID == "b" {
			return i
		}
	}
	return -1
}

func TestFailoverWeighsPriceOddsAndDeadline(t *testing.T) {
	t.Parallel()
	boot := learned.BootTimes{Prior50: 4 * time.Minute, Prior95: 8 * time.Minute}
	cheap := learned.Offering{ID: "cheap", Price: 10 * money.USD, Boot: boot}
	fast := learned.Offering{ID: "fast", Price: 20 * money.USD,
		Boot: learned.BootTimes{Prior50: time.Minute, Prior95: 2 * time.Minute}}
	order := func(deadline time.Duration) []string {
		var ids []string
		for _, c := range learned.FailoverOrder([]learned.Offering{cheap, fast}, dawn.Add(deadline), dawn) {
			ids = append(ids, c.ID)
		}
		return ids
	}
	require.Equal(t, []string{"cheap", "fast"}, order(time.Hour))
	require.Equal(t, []string{"fast", "cheap"}, order(3*time.Minute))
	cheap.Supply = cheap.Supply.Failed(dawn, dawn, 2*time.Hour)
	require.Equal(t, []string{"fast", "cheap"}, order(time.Hour), "it has nothing until after the deadline")
	last := learned.FailoverOrder([]learned.Offering{cheap}, dawn.Add(time.Hour), dawn)[0]
	require.True(t, math.IsInf(last.Cost, 1))
	require.Zero(t, last.OnTime)
}

func TestArrivalsAreLearnedByTheHourOfTheWeek(t *testing.T) {
	t.Parallel()
	var a learned.Arrivals
	monday := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	a = a.Observe(nil, monday)
	for day := range 70 {
		at := monday.AddDate(0, 0, day)
		starts := []learned.Start{{At: at.Add(9*time.Hour + 30*time.Minute), Nodes: 2},
			{At: at.Add(9*time.Hour + 10*time.Minute), Nodes: 4}}
		a = a.Observe(starts, at.Add(12*time.Hour))
		require.Equal(t, a, a.Observe([]learned.Start{{At: at.Add(9 * time.Hour), Nodes: 9}}, at.Add(12*time.Hour)),
			"once")
		a = a.Observe(nil, at.Add(24*time.Hour))
	}
	at := monday.AddDate(0, 0, 70)
	nine := a.Expected(at.Add(9*time.Hour), at.Add(10*time.Hour))
	require.InDelta(t, 4, nine, 0.6, "six nodes, drawn towards the mean")
	require.Less(t, a.Expected(at.Add(14*time.Hour), at.Add(15*time.Hour)), 0.2)
	half := at.Add(9*time.Hour + 30*time.Minute)
	require.InDelta(t, nine, a.Expected(at.Add(9*time.Hour), half)+a.Expected(half, at.Add(10*time.Hour)), 1e-9)
	require.InDelta(t, 6, a.Expected(at, at.Add(24*time.Hour)), 0.5)
	require.Greater(t, a.Watched(), 500.0)
	require.Zero(t, learned.Arrivals{}.Expected(at, at.Add(time.Hour)))
	gone := a.Observe(nil, at.AddDate(3, 0, 0))
	require.Less(t, gone.Expected(at, at.Add(24*time.Hour)), 0.7*6, "years in which nobody came count")
}
