package quota_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
)

func drawCaps(t *rapid.T, name string) quota.Caps {
	return quota.Caps{
		MaxGPUs:        rapid.IntRange(0, 3).Draw(t, name+" gpus"),
		MaxPerDay:      money.MicroUSD(rapid.IntRange(0, 3).Draw(t, name+" cost")),
		MaxLead:        time.Duration(rapid.IntRange(0, 3).Draw(t, name+" lead")) * time.Hour,
		MaxWindow:      time.Duration(rapid.IntRange(0, 3).Draw(t, name+" window")) * time.Hour,
		GPUHoursPerDay: quota.AtMost(rapid.Int64Range(-1, 3).Draw(t, name+" hours")),
	}
}

// What two caps allow together is what each allows alone, for any request.
func TestTheTightestOfTwoCapsAllowsWhatBothAllow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawCaps(t, "a"), drawCaps(t, "b")
		both := a.Tightest(b)
		require.Equal(t, both, b.Tightest(a))
		require.Empty(t, both.Beyond(a))
		require.Empty(t, both.Beyond(b))
		ask := quota.Ask{
			Window: hours(1, 1+rapid.IntRange(1, 4).Draw(t, "length")),
			Demand: gpus(rapid.Int64Range(0, 4).Draw(t, "gpus")),
			Spend: quota.Spend{Cost: money.MicroUSD(rapid.IntRange(0, 4).Draw(t, "cost")),
				GPUSeconds: 3600 * rapid.Int64Range(0, 4).Draw(t, "hours")},
		}
		allows := func(c quota.Caps) bool { return len(quota.MeasureCaps(c, nil, ask, monday).Violations()) == 0 }
		require.Equal(t, allows(a) && allows(b), allows(both))
		if allows(a) && !allows(b) {
			require.NotEmpty(t, a.Beyond(b))
		}
	})
}

// A sum holds at every instant, and has spent on every day, what its parts do.
func TestSumAddsUpItsParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := make([]*quota.Commitments, rapid.IntRange(0, 3).Draw(t, "parts"))
		whole := &quota.Commitments{}
		for i := range parts {
			if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
				continue
			}
			parts[i] = &quota.Commitments{}
			for range rapid.IntRange(0, 5).Draw(t, "bookings") {
				from := rapid.IntRange(0, 60).Draw(t, "from")
				iv, n := hours(from, from+rapid.IntRange(1, 9).Draw(t, "length")),
					gpus(rapid.Int64Range(1, 4).Draw(t, "n"))
				spend := quota.Spend{Cost: money.USD, GPUSeconds: 7}
				parts[i].Add(iv, n, spend)
				whole.Add(iv, n, spend)
			}
		}
		sum := quota.Sum(parts)
		for h := range 72 {
			at := hours(h, h+1).Start
			require.Equal(t, whole.At(at), sum.At(at), h)
			require.Equal(t, whole.On(at), sum.On(at))
			require.Equal(t, whole.In(quota.PerMonth, at), sum.In(quota.PerMonth, at))
		}
	})
}
