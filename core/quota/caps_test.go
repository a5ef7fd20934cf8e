package quota_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
)

// Each cap tells its limit and what would be, in the unit of its rule: what is
// committed and what is asked together, not one of the two.
func TestACapSaysWhatWouldBe(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	c.Add(hours(30, 34), gpus(6), quota.Spend{Cost: 12 * money.USD, GPUSeconds: 5 * 3600})
	caps := quota.Caps{
		MaxGPUs: 9, MaxPerDay: 19 * money.USD, MaxLead: 90 * time.Minute, MaxWindow: 2 * time.Minute,
		GPUHoursPerDay: quota.AtMost(6),
	}
	a := quota.Ask{Window: hours(31, 33), Demand: gpus(4), Spend: quota.Spend{Cost: 8 * money.USD,
		GPUSeconds: 2 * 3600}}
	start, day := quota.Times{At: a.Window.Start}, quota.Times{At: hours(24, 25).Start}
	require.Equal(t, []quota.Violation{
		{Rule: quota.RuleNominal, Limit: 9, Asked: 10, Times: start},
		{Rule: quota.RuleMoney, Period: quota.PerDay, Limit: 19_000_000, Asked: 20_000_000, Times: day},
		{Rule: quota.RuleGPUHours, Period: quota.PerDay, Limit: 6 * 3600, Asked: 7 * 3600, Times: day},
		{Rule: quota.RuleLead, Limit: 90 * 60, Asked: 31 * 3600, Times: start},
		{Rule: quota.RuleWindow, Limit: 2 * 60, Asked: 2 * 3600, Times: start},
	}, quota.MeasureCaps(caps, &c, a, monday).Violations())
}

func TestWhatProlongsCountsFromWhereTheBookingBegan(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	c.Add(hours(22, 25), gpus(1), quota.Spend{Cost: 3 * money.USD})
	caps := quota.Caps{MaxGPUs: 9, MaxPerDay: 4 * money.USD, MaxLead: 99 * time.Hour, MaxWindow: 4 * time.Hour}
	a := quota.Ask{
		Window: hours(25, 27),
		Since:  hours(22, 23).Start,
		Demand: gpus(1),
		Spend:  quota.Spend{Cost: 2 * money.USD},
	}
	require.Equal(t, []quota.Violation{
		{
			Rule:   quota.RuleMoney,
			Period: quota.PerDay,
			Limit:  4_000_000,
			Asked:  5_000_000,
			Times:  quota.Times{At: monday},
		},
		{Rule: quota.RuleWindow, Limit: 4 * 3600, Asked: 5 * 3600, Times: quota.Times{At: a.Window.Start}},
	}, quota.MeasureCaps(caps, &c, a, monday).Violations())
}

// Each cap is named when it alone allows one more, and none when all are equal.
func TestBeyondNamesTheCapThatAllowsMore(t *testing.T) {
	t.Parallel()
	limit := quota.Caps{MaxGPUs: 2, MaxPerDay: 3, MaxLead: 4, MaxWindow: 5, GPUHoursPerDay: quota.AtMost(6)}
	for name, more := range map[string]func(*quota.Caps){
		"":                   func(*quota.Caps) {},
		"max_gpus":           func(c *quota.Caps) { c.MaxGPUs++ },
		"max_per_day":        func(c *quota.Caps) { c.MaxPerDay++ },
		"max_lead_seconds":   func(c *quota.Caps) { c.MaxLead++ },
		"max_window_seconds": func(c *quota.Caps) { c.MaxWindow++ },
		"gpu_hours_per_day":  func(c *quota.Caps) { c.GPUHoursPerDay = quota.AtMost(7) },
	} {
		wider := limit
		more(&wider)
		require.Equal(t, name, wider.Beyond(limit))
		require.Empty(t, limit.Beyond(wider), name)
	}
}

func TestTheLargestLimitOfGPUHoursHolds(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64 / 3600
	caps := quota.Caps{GPUHoursPerDay: quota.AtMost(most), MaxWindow: time.Hour}
	a := quota.Ask{Window: hours(0, 1), Spend: quota.Spend{GPUSeconds: most * 3600}}
	require.Empty(t, quota.MeasureCaps(caps, nil, a, monday).Violations())
	a.Spend.GPUSeconds++
	require.Equal(t, []quota.Rule{quota.RuleGPUHours}, rulesOf(quota.MeasureCaps(caps, nil, a, monday).Violations()))
}
