package wait_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/wait"
)

// precision is how far an estimate may be from the quantile itself.
const precision = 20 * time.Millisecond

// requireQuantiles compares an estimate with what was computed by hand.
func requireQuantiles(t require.TestingT, e wait.Estimate, p10, p50, p90 time.Duration, name string) {
	require.InDelta(t, p10, e.P10, float64(precision), "%s: P10 is %s", name, e.P10)
	require.InDelta(t, p50, e.P50, float64(precision), "%s: P50 is %s", name, e.P50)
	require.InDelta(t, p90, e.P90, float64(precision), "%s: P90 is %s", name, e.P90)
}

// While nothing is known of leases, one ends at any time until its end with the same
// chance.
func TestPlacesComeWhenEnoughLeasesHaveEnded(t *testing.T) {
	t.Parallel()
	hour := wait.Place{Room: time.Hour, Holds: []wait.Hold{{Lease: time.Hour}}}
	half := wait.Place{Room: 30 * time.Minute, Holds: []wait.Hold{{Age: 30 * time.Minute, Lease: time.Hour}}}
	both := wait.Place{Room: time.Hour, Holds: []wait.Hold{{Lease: time.Hour}, {Lease: time.Hour}}}
	booked := wait.Place{Room: time.Hour, Fixed: 40 * time.Minute, Holds: hour.Holds}
	for name, c := range map[string]struct {
		facts         wait.Facts
		p10, p50, p90 float64 // minutes
	}{
		"one":               {wait.Facts{Places: []wait.Place{hour}, Need: 1}, 6, 30, 54},
		"its second half":   {wait.Facts{Places: []wait.Place{half}, Need: 1}, 3, 15, 27},
		"two at one place":  {wait.Facts{Places: []wait.Place{both}, Need: 1}, 18.9737, 42.4264, 56.9210},
		"both of two":       {wait.Facts{Places: []wait.Place{hour, hour}, Need: 2}, 18.9737, 42.4264, 56.9210},
		"either of two":     {wait.Facts{Places: []wait.Place{hour, hour}, Need: 1}, 3.0790, 17.5736, 41.0263},
		"two of three":      {wait.Facts{Places: []wait.Place{hour, hour, hour}, Need: 2}, 11.7479, 30, 48.2521},
		"a booking besides": {wait.Facts{Places: []wait.Place{booked}, Need: 1}, 40, 40, 54},
		"cleaning": {wait.Facts{Places: []wait.Place{{Room: 70 * time.Minute, Holds: hour.Holds}}, Need: 1,
			Cleaning: 10 * time.Minute}, 16, 40, 64},
		"it begins later": {wait.Facts{Places: []wait.Place{hour}, Need: 1, Starts: 45 * time.Minute}, 45, 45, 54},
	} {
		minutes := func(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }
		e := wait.EstimateFrom(c.facts)
		requireQuantiles(t, e, minutes(c.p10), minutes(c.p50), minutes(c.p90), name)
	}
}

// What has room at once, or is long overdue, is waited for no longer than an
// estimate can tell.
func TestWhatIsThereIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	hour := wait.Place{Room: time.Hour, Holds: []wait.Hold{{Lease: time.Hour}}}
	overdue := wait.Place{Room: time.Hour, Holds: []wait.Hold{{Age: 100 * time.Hour, Lease: time.Hour}}}
	for name, f := range map[string]wait.Facts{
		"free":    {Places: []wait.Place{{}, hour}, Need: 1},
		"overdue": {Places: []wait.Place{overdue}, Need: 1},
		"free instead": {Missing: 1, Blocked: time.Hour, Stock: &wait.StockOut{Refused: 1, Block: time.Minute},
			Instead: []wait.Place{{}}, Turn: 1},
	} {
		require.Less(t, wait.EstimateFrom(f).P90, 10*time.Millisecond, name)
	}
	require.Equal(t, wait.BasisNow, wait.EstimateFrom(wait.Facts{Places: []wait.Place{{}}, Need: 1}).Basis)
}

// chanceByHand adds up every way in which enough places have room by t.
func chanceByHand(f wait.Facts, t time.Duration) float64 {
	chance := 0.0
	for set := range 1 << len(f.Places) {
		this, n := 1.0, 0
		for i, p := range f.Places {
			has := 1.0
			if t < p.Room {
				for _, h := range p.Holds {
					has *= (usedPart(h, max(0, t-f.Cleaning)) - usedPart(h, 0)) / (1 - usedPart(h, 0))
				}
				if t < p.Fixed || len(p.Holds) == 0 {
					has = 0
				}
			}
			if set&(1<<i) == 0 {
				has = 1 - has
			} else {
				n++
			}
			this *= has
		}
		if n >= f.Need {
			chance += this
		}
	}
	return chance
}

// usedPart is the chance that a lease is over when it has lasted for d more, of one
// that begins.
func usedPart(h wait.Hold, d time.Duration) float64 {
	return learned.LeaseUse{}.Distribution().CDF(float64(h.Age+d) / float64(h.Lease) * learned.WholeLease)
}

func TestAPlacesQuantilesAreThoseOfAllItsWays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		minutes := func(label string, from, to int) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(r, label)) * time.Minute
		}
		f := wait.Facts{Cleaning: minutes("cleaning", 0, 20)}
		for range rapid.IntRange(1, 4).Draw(r, "places") {
			p := wait.Place{Fixed: minutes("fixed", 0, 90)}
			p.Room = p.Fixed
			for range rapid.IntRange(0, 2).Draw(r, "leases") {
				h := wait.Hold{Age: minutes("age", 0, 50), Lease: time.Hour}
				p.Holds, p.Room = append(p.Holds, h), max(p.Room, h.Lease-h.Age+f.Cleaning)
			}
			f.Places = append(f.Places, p)
		}
		f.Need = rapid.IntRange(1, len(f.Places)).Draw(r, "need")
		e := wait.EstimateFrom(f)
		const near = 1e-6
		for q, at := range map[float64]time.Duration{0.1: e.P10, 0.5: e.P50, 0.9: e.P90} {
			require.GreaterOrEqual(r, chanceByHand(f, at), q-near, "%g: %s", q, at)
			if before := at - precision; before > 0 {
				require.Less(r, chanceByHand(f, before), q+near, "%g: %s", q, at)
			}
		}
	})
}

// With odds of a half the chance of being refused once more is a half for as long
// again as it lasted: blocks of 1, 2, 4, 8 and then 16 minutes.
func TestAStockOutLastsForAsLongAgain(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for name, c := range map[string]struct {
		stock         wait.StockOut
		p10, p50, p90 time.Duration
	}{
		"refused once":        {wait.StockOut{Odds: 0.5, Refused: 1, Block: m}, 0, 0, (2 + 4 + 8) * m},
		"refused twice":       {wait.StockOut{Odds: 0.5, Refused: 2, Block: m}, 0, 0, (4 + 8 + 16) * m},
		"refused three times": {wait.StockOut{Odds: 0.5, Refused: 3, Block: m}, 0, 0, (8 + 16 + 16) * m},
		"never refused":       {wait.StockOut{Odds: 0.5, Block: m}, 0, 0, (1 + 2 + 4 + 8) * m},
		"hopeless is not so": {wait.StockOut{Odds: 0, Refused: 1, Block: m},
			0, (2 + 4 + 8) * m, (2 + 4 + 8 + 79*16) * m},
		"certain is not so":        {wait.StockOut{Odds: 1, Refused: 1, Block: m}, 0, 0, 2 * m},
		"longer blocks by as many": {wait.StockOut{Odds: 0.5, Refused: 1, Block: 3 * m}, 0, 0, 42 * m},
	} {
		e := wait.EstimateFrom(wait.Facts{Missing: 1, Blocked: 5 * m, Stock: &c.stock})
		requireQuantiles(t, e, 5*m+c.p10, 5*m+c.p50, 5*m+c.p90, name)
	}
}

// By 10 minutes from now the provider gives a node with a chance of 1/2, by 12 of
// 3/4, by 16 of 7/8; a lease of an hour ends at any minute with the same chance.
func TestWhateverComesFirstIsWaitedFor(t *testing.T) {
	t.Parallel()
	lease := func(length time.Duration) wait.Facts {
		return wait.Facts{Missing: 1, Blocked: 10 * time.Minute, Turn: 1,
			Stock:   &wait.StockOut{Odds: 0.5, Refused: 1, Block: time.Minute},
			Instead: []wait.Place{{Room: length, Holds: []wait.Hold{{Lease: length}}}}}
	}
	requireQuantiles(t, wait.EstimateFrom(lease(time.Hour)), 6*time.Minute, 10*time.Minute, 16*time.Minute, "an hour")
	requireQuantiles(t, wait.EstimateFrom(lease(22*time.Minute)), 132*time.Second, 10*time.Minute, 792*time.Second,
		"0.25 · (1 − t/22) is 0.1 at 13.2 minutes")
}

// A lease that ends in a year is no help: the nodes are waited for as if it were not
// there.
func TestALeaseThatEndsLateIsNoHelp(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for missing := 1; missing <= 4; missing++ {
		f := wait.Facts{Missing: missing, Blocked: time.Minute, Turn: 1,
			Stock: &wait.StockOut{Odds: 0.5, Refused: 1, Block: time.Minute},
			Boot:  learned.BootTimes{Prior50: 2 * time.Minute, Prior95: 10 * time.Minute}}
		alone := wait.EstimateFrom(f)
		f.Instead = []wait.Place{{Room: 100 * year, Holds: []wait.Hold{{Lease: 100 * year}}}}
		beside := wait.EstimateFrom(f)
		for _, pair := range [][2]time.Duration{{alone.P10, beside.P10}, {alone.P50, beside.P50},
			{alone.P90, beside.P90}} {
			require.InEpsilon(t, pair[0], pair[1], 0.001, "%d missing", missing)
		}
	}
}

// Each of n nodes that are asked for is there by the n-th root's quantile.
func TestAllMissingNodesMustBoot(t *testing.T) {
	t.Parallel()
	boot := learned.BootTimes{Prior50: 2 * time.Minute, Prior95: 10 * time.Minute}
	for missing := 1; missing <= 4; missing++ {
		e := wait.EstimateFrom(wait.Facts{Missing: missing, Boot: boot, Blocked: time.Minute})
		for q, at := range map[float64]time.Duration{0.1: e.P10, 0.5: e.P50, 0.9: e.P90} {
			require.InDelta(t, q, math.Pow(boot.Within(at-time.Minute), float64(missing)), 0.001)
		}
	}
}

func TestWhoGivesUpWaitsNoLonger(t *testing.T) {
	t.Parallel()
	e := wait.Estimate{P10: time.Minute, P50: 2 * time.Minute, P90: 3 * time.Minute, Basis: wait.BasisBoots, Samples: 4}
	for limit, p90 := range map[time.Duration]time.Duration{
		4 * time.Minute: 3 * time.Minute, 150 * time.Second: 150 * time.Second, 2 * time.Minute: 2 * time.Minute,
	} {
		want := e
		want.P90 = p90
		got, likely := e.Within(limit)
		require.True(t, likely)
		require.Equal(t, want, got)
	}
	got, likely := e.Within(2*time.Minute - 1)
	require.False(t, likely)
	require.Zero(t, got)
}
