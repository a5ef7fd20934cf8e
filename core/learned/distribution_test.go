package learned_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
)

// While nothing was seen every part of a lease is as likely as any other: a straight
// line to 0.99, and beyond it an exponential tail as long as from the median to there.
func TestADistributionIsLinearWithATail(t *testing.T) {
	t.Parallel()
	const tail = 0.49
	d := learned.LeaseUse{}.Distribution()
	for _, part := range []float64{0, 0.001, 0.01, 0.255, 0.5, 0.6, 0.985, 0.99} {
		require.InDelta(t, part, d.CDF(part*learned.WholeLease), 1e-9)
		require.InDelta(t, part*learned.WholeLease, d.Remaining(0, part), 1, "the inverse of %g", part)
	}
	require.Zero(t, d.CDF(-1))
	for _, tails := range []float64{0.5, 1, 3} {
		require.InDelta(t, 1-math.Exp(-tails)/100, d.CDF((0.99+tails*tail)*learned.WholeLease), 1e-9)
	}
	require.InDelta(t, (0.99+tail*math.Ln10)*learned.WholeLease, d.Remaining(0, 0.999), 1)
}

// What has lasted for some time is one of those that lasted longer; beyond all of
// them nothing is forgotten.
func TestWhatIsLeftIsOfThoseThatLastedLonger(t *testing.T) {
	t.Parallel()
	d := learned.LeaseUse{}.Distribution()
	part := func(p float64) time.Duration { return time.Duration(p * learned.WholeLease) }
	for _, c := range []struct{ age, q, left float64 }{
		{0.5, 0.5, 0.25}, {0.25, 0.4, 0.3}, {0.25, 0.1, 0.075}, {0.9, 0.5, 0.05}, {0.5, 0, 0},
		{1e6, 0.5, 0.49 * math.Ln2}, {1e6, 0.9, 0.49 * math.Ln10}, {1e6, 0, 0},
	} {
		require.InDelta(t, part(c.left), d.Remaining(part(c.age), c.q), 1, "%g of what lasted %g", c.q, c.age)
	}
}

func TestABootThatAlwaysTakesAsLong(t *testing.T) {
	t.Parallel()
	b := learned.BootTimes{Faded: 64}
	for range 64 {
		b.Seen = append(b.Seen, 100*time.Second)
	}
	require.InDelta(t, 0.99, b.Within(100*time.Second), 1e-9)
	require.InDelta(t, 0.005, b.Within(50*time.Second), 1e-9)
	require.InDelta(t, 1-math.Exp(-1)/100, b.Within(125*time.Second), 1e-9, "one that hangs: a quarter longer")
	require.InDelta(t, 1, learned.BootTimes{}.Within(0), 0, "what takes no time is there")
	require.InDelta(t, 1, learned.BootTimes{}.Within(time.Hour), 0)
}

// The prior is the log-normal distribution through its two points.
func TestThePriorHasEveryQuantile(t *testing.T) {
	t.Parallel()
	b := learned.BootTimes{Prior50: time.Minute, Prior95: 4 * time.Minute}
	const z75, z95 = 0.6744897501960817, 1.6448536269514722
	require.InDelta(t, 60*math.Pow(4, z75/z95), b.Quantile(0.75).Seconds(), 1e-6)
	require.InDelta(t, 60*math.Pow(4, -z75/z95), b.Quantile(0.25).Seconds(), 1e-6)
	require.InDelta(t, 15, b.Quantile(0.05).Seconds(), 1e-6)
	require.Zero(t, learned.BootTimes{Prior95: time.Minute}.Quantile(0.9), "no median, no prior")
	flat := learned.BootTimes{Prior50: time.Minute, Prior95: time.Minute}
	require.Equal(t, time.Minute, flat.Quantile(0.99))
}

func TestEachBootFadesThePriorByOne(t *testing.T) {
	t.Parallel()
	var b learned.BootTimes
	for n := range 70 {
		b = b.Learn(time.Minute)
		require.Equal(t, min(64, n+1), b.Faded)
		require.Len(t, b.Seen, min(64, n+1))
	}
}

// Six slow boots after m fast ones lie √(18·m/(m+7)) deviations from one source:
// four for m = 56, which is not clear enough.
func TestAChangeIsSeenWhenItIsClear(t *testing.T) {
	t.Parallel()
	for before, changed := range map[int]bool{50: false, 56: false, 57: true, 58: true} {
		var b learned.BootTimes
		for range before {
			b = b.Learn(time.Minute)
		}
		for range 6 {
			require.Greater(t, len(b.Seen), 6, "five are too few")
			b = b.Learn(time.Hour)
		}
		if !changed {
			require.Len(t, b.Seen, before+6, "after %d", before)
			continue
		}
		require.Len(t, b.Seen, 6, "after %d", before)
		require.Equal(t, 64, b.Faded, "the prior is forgotten, too")
		require.Equal(t, time.Hour, b.P50())
	}
}

func TestAPartOfALeaseIsLearned(t *testing.T) {
	t.Parallel()
	var l learned.LeaseUse
	l = l.Learn(15*time.Minute, time.Hour).Learn(2*time.Hour, time.Hour).Learn(-time.Second, time.Hour)
	require.Equal(t, []time.Duration{250_000, 1_000_000, 0}, l.Seen)
	require.Equal(t, l, l.Learn(time.Minute, 0), "no lease")
	require.Equal(t, l, l.Learn(time.Minute, -time.Hour))
	for range 64 {
		l = l.Learn(30*time.Minute, time.Hour)
	}
	require.Len(t, l.Seen, 64)
	require.Equal(t, time.Duration(500_000), l.Seen[0], "the oldest are forgotten")
	require.InDelta(t, 0.99, l.Distribution().CDF(500_000), 1e-9)
	require.Zero(t, l.Distribution().CDF(0))
}

func TestOddsByHand(t *testing.T) {
	t.Parallel()
	s := learned.Supply{}.Ready(dawn)
	day := 2.8 / 3
	require.InDelta(t, (1+4*day)/5, s.Odds(dawn), 1e-9, "this hour")
	require.InDelta(t, day, s.Odds(dawn.Add(time.Hour)), 1e-3, "another")
	s = s.Failed(dawn, dawn, time.Minute)
	require.InDelta(t, (1+4*0.7)/6, s.Odds(dawn), 1e-9)
	require.InDelta(t, 0.7, s.Odds(dawn.Add(time.Hour)), 1e-3)
}

func TestAnOfferingsCostIsOverItsChance(t *testing.T) {
	t.Parallel()
	free := learned.Offering{ID: "free", Supply: learned.Supply{BlockedUntil: dawn.Add(2 * time.Hour)},
		Boot: learned.BootTimes{Prior50: time.Minute, Prior95: 2 * time.Minute}}
	order := learned.FailoverOrder([]learned.Offering{free, {ID: "paid", Price: 18 * money.USD}}, dawn.Add(time.Hour),
		dawn)
	require.Equal(t, "paid", order[0].ID)
	require.InDelta(t, 20, order[0].Cost, 1e-9)
	require.InDelta(t, 0.9, order[0].OnTime, 1e-9)
	require.Equal(t, learned.Choice{ID: "free", Cost: math.Inf(1)}, order[1])
}

func TestAWindowByHand(t *testing.T) {
	t.Parallel()
	const length = 64 * time.Minute // a grain is a minute
	at := func(seconds int) time.Time { return dawn.Add(time.Duration(seconds) * time.Second) }
	w := learned.Window{}.Add(2, length, at(10)).Add(3, length, at(50))
	require.Equal(t, learned.Window{{At: at(50), N: 5}}, w, "of one grain")
	require.Equal(t, w, w.Add(0, length, at(70)), "nothing is no event")
	require.Equal(t, w, w.Add(-1, length, at(70)))
	w = w.Add(4, length, at(60)).Add(1, length, at(120))
	all := learned.Window{{At: at(50), N: 5}, {At: at(60), N: 4}, {At: at(120), N: 1}}
	require.Equal(t, all, w)
	for _, tc := range []struct {
		added []time.Time
		left  learned.Window
	}{
		{nil, all},
		{[]time.Time{at(120)}, all[:2]},
		{[]time.Time{at(120), at(120)}, all[:2]},
		{[]time.Time{at(121)}, all},
		{[]time.Time{at(10)}, learned.Window{{At: at(50), N: 4}, all[1], all[2]}},
		{[]time.Time{at(60), at(120), at(51)}, learned.Window{all[0], {At: at(60), N: 2}}},
		{slices.Repeat([]time.Time{at(50)}, 6), all[1:]},
		{slices.Repeat([]time.Time{at(50), at(60), at(120)}, 5), nil},
	} {
		require.Equal(t, tc.left, w.Take(tc.added, length, at(130)), "without %s", tc.added)
	}
	require.Equal(t, all, w, "a window is a value")
	require.Equal(t, 5, w.Sum(length, at(55)), "where the clock was set back, what is yet to be does not count")
	require.Zero(t, w.Sum(length, at(49)))
	end := at(50).Add(length)
	require.Equal(t, 10, w.Sum(length, end.Add(-1)))
	require.Equal(t, 5, w.Sum(length, end))
	require.Equal(t, all[1:], w.Take(nil, length, end), "what no longer counts is dropped")
}
