package fairshare_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/quota"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func after(hours float64) time.Time { return monday.Add(time.Duration(hours * float64(time.Hour))) }

func gpus(n int64) quota.Vector { return quota.Vector{quota.GPUs: n} }

func testPolicy() fairshare.Policy {
	return fairshare.Policy{HalfLife: 24 * time.Hour, Entry: time.Hour, MaxIdle: 4}
}

func TestUseIsForgottenByHalves(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	u := p.ChargeUse(fairshare.Usage{}, monday, gpus(8), time.Hour)
	now := p.Share(u, gpus(16), 1)
	require.Positive(t, now)
	require.InDelta(t, now/2, p.Share(p.Advance(u, after(24)), gpus(16), 1), 1e-12)
	require.Equal(t, u, p.Advance(u, after(-5)), "time does not run backwards")
	require.InDelta(t, now/3, p.Share(u, gpus(16), 3), 1e-12, "a weight divides")
	require.InDelta(t, now, p.Share(u, gpus(16), 0), 1e-12)
}

func TestSteadyUseIsItsShare(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	u := fairshare.Usage{}
	for h := range 2000 {
		u = p.ChargeUse(u, after(float64(h)), gpus(4), time.Hour)
	}
	require.InDelta(t, 0.25, p.Share(u, gpus(16), 1), 1e-6)
	require.InDelta(t, 0.25, p.Share(p.ChargeUse(fairshare.Usage{}, monday, gpus(4), 10_000*time.Hour), gpus(16), 1),
		1e-6,
		"in one piece, too")
}

func TestWhatIsLeftWithoutAPart(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	part := p.ChargeEntry(p.ChargeUse(fairshare.Usage{}, monday, gpus(2), time.Hour), monday, gpus(1))
	whole := p.ChargeSpeculative(p.ChargeUse(part, monday, gpus(3), time.Hour), monday, gpus(9), time.Hour)
	require.InDelta(t, p.Share(p.ChargeUse(fairshare.Usage{}, monday, gpus(3), time.Hour), gpus(16), 1),
		p.Share(whole.Without(part), gpus(16), 1), 1e-12)
	require.Equal(t, fairshare.Usage{At: monday}, part.Without(whole), "nothing is below zero")
}

func TestTheDominantResourceCounts(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	capacity := quota.Vector{quota.GPUs: 100, quota.CPUs: 100}
	u := p.ChargeUse(fairshare.Usage{}, monday, quota.Vector{quota.GPUs: 10, quota.CPUs: 40, quota.Bookings: 99},
		10_000*time.Hour)
	require.InDelta(t, 0.4, p.Share(u, capacity, 1), 1e-6, "jobs are not limited, and do not count")
	require.Zero(t, p.Share(u, quota.Vector{}, 1))
}

func TestABurstCountsAtOnce(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	burst := fairshare.Usage{}
	for range 10 {
		burst = p.ChargeEntry(burst, monday, gpus(8))
	}
	steady := p.ChargeUse(fairshare.Usage{}, monday, gpus(8), 2*time.Hour)
	require.Greater(t, p.Share(burst, gpus(16), 1), p.Share(steady, gpus(16), 1))
	require.Less(t, p.Share(p.Advance(burst, after(12)), gpus(16), 1),
		p.Share(p.Advance(steady, after(12)), gpus(16), 1), "and not for long")
	p.Entry = 0
	require.Zero(t, p.Share(p.ChargeEntry(fairshare.Usage{}, monday, gpus(8)), gpus(16), 1))
}

func TestCalibrationWeighsIdleTime(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	outcome := func(probability float64, claims ...bool) float64 {
		u := fairshare.Usage{}
		for _, claimed := range claims {
			u = p.Outcome(u, monday, probability, 1e9, claimed)
		}
		return p.Factor(u)
	}
	require.InDelta(t, 1, p.Factor(fairshare.Usage{}), 0, "nothing is known yet")
	require.InDelta(t, 1, outcome(0.5, true, false, true, false), 0)
	require.InDelta(t, 1, outcome(0.1, true, false), 0, "understating is not rewarded")
	require.InDelta(t, 4, outcome(1, false, false), 1e-4)
	require.InDelta(t, 2.5, outcome(1, true, false), 1e-4, "half of it came true")
	p.MaxIdle = 0
	require.InDelta(t, 1, outcome(1, false), 0)
}

func TestUsageIsStoredExactly(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	rapid.Check(t, func(t *rapid.T) {
		u := fairshare.Usage{}
		for range rapid.IntRange(0, 8).Draw(t, "events") {
			now := after(rapid.Float64Range(0, 500).Draw(t, "hour"))
			n := gpus(rapid.Int64Range(1, 64).Draw(t, "gpus"))
			u = p.ChargeUse(u, now, n, time.Duration(rapid.Int64Range(0, 1e14).Draw(t, "held")))
			u = p.ChargeSpeculative(u, now, n, time.Hour)
			u = p.Outcome(u, now, rapid.Float64Range(-1, 2).Draw(t, "p"), 1e4, rapid.Bool().Draw(t, "claimed"))
			u = p.ChargeEntry(u, now, n)
		}
		text, err := json.Marshal(u)
		require.NoError(t, err)
		var again fairshare.Usage
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, u, again)
		share := p.Share(u, gpus(8), 1)
		require.False(t, math.IsNaN(share) || math.IsInf(share, 0) || share < 0)
		require.GreaterOrEqual(t, p.Factor(u), 1.0)
		require.LessOrEqual(t, p.Factor(u), p.MaxIdle)
	})
}

func TestAPolicyWithoutAHalfLifeHasAWeek(t *testing.T) {
	t.Parallel()
	week := fairshare.Default()
	require.Equal(t, 7*24*time.Hour, week.HalfLife)
	for _, none := range []time.Duration{0, -time.Hour} {
		p := week
		p.HalfLife = none
		use := func(p fairshare.Policy) fairshare.Usage {
			return p.Advance(p.ChargeUse(fairshare.Usage{}, monday, gpus(8), time.Hour), after(100))
		}
		require.Equal(t, use(week), use(p), none)
		require.InDelta(t, week.Share(use(week), gpus(16), 1), p.Share(use(p), gpus(16), 1), 0)
	}
}

// What was in use is a share of what could have been used: of a capacity decayed
// the same, of which 1/ln 2 half-lives count.
func TestEntryIsAShareOfAllThatCounts(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	want := 8.0 * 3600 / (24 * 3600 / math.Ln2) / 16
	require.InDelta(t, want, p.Share(p.ChargeEntry(fairshare.Usage{}, monday, gpus(8)), gpus(16), 1), 1e-12)
}
