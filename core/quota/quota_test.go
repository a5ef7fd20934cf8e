package quota_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func hours(from, to int) calendar.Interval {
	return calendar.Interval{Start: monday.Add(time.Duration(from) * time.Hour),
		End: monday.Add(time.Duration(to) * time.Hour)}
}

func gpus(n int64) quota.Vector { return quota.Vector{quota.GPUs: n} }

// rulesOf lists what a check found, in order.
func rulesOf(found []quota.Violation) []quota.Rule {
	var names []quota.Rule
	for _, v := range found {
		names = append(names, v.Rule)
	}
	return names
}

func TestTheWorstInstantCounts(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	c.Hold(hours(9, 12), gpus(4))
	c.Hold(hours(11, 14), gpus(3))
	for _, tc := range []struct {
		name  string
		iv    calendar.Interval
		n     int64
		limit int
		over  bool
	}{
		{"exactly the limit", hours(8, 16), 1, 8, false},
		{"one over", hours(8, 16), 2, 8, true},
		{"only the first", hours(9, 11), 4, 8, false},
		{"after the edge", hours(14, 16), 8, 8, false},
		{"nothing allowed", hours(14, 16), 1, 0, true},
		{"room left", hours(12, 14), 2, 8, false},
	} {
		h := quota.Holdings{Limits: quota.Limits{GPUs: tc.limit}, Committed: &c}
		found := quota.Measure(h, quota.Ask{Window: tc.iv, Demand: gpus(tc.n)}).Violations()
		require.Equal(t, tc.over, len(found) > 0, tc.name)
	}
}

func TestAViolationSaysWhen(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	c.Add(hours(9, 12), gpus(4), quota.Spend{Cost: 9 * money.USD, GPUSeconds: 12 * 3600})
	c.Hold(hours(11, 14), gpus(3))
	h := quota.Holdings{Committed: &c, Limits: quota.Limits{
		GPUs: 8, GPUHours: quota.AtMost(20), MoneyPerPeriod: quota.AtMost(int64(10 * money.USD)),
		SpeculationPerDay: money.USD,
	}, Speculative: &c}
	a := quota.Ask{Window: hours(8, 13), Demand: gpus(2), Spend: quota.Spend{Cost: money.USD + 1,
		GPUSeconds: 10 * 3600},
		Speculative: true}
	midnight := hours(24, 25).Start
	require.Equal(t, []quota.Violation{
		{Rule: quota.RuleNominal, Limit: 8, Asked: 9,
			Times: quota.Times{At: hours(11, 12).Start, ClearsAt: hours(12, 13).Start}},
		{Rule: quota.RuleGPUHours, Period: quota.PerDay, Limit: 72_000, Asked: 79_200,
			Times: quota.Times{At: monday, ClearsAt: midnight}},
		{Rule: quota.RuleMoney, Period: quota.PerDay, Limit: 10_000_000, Asked: 10_000_001,
			Times: quota.Times{At: monday, ClearsAt: midnight}},
		{Rule: quota.RuleSpeculation, Period: quota.PerDay, Limit: 1_000_000, Asked: 10_000_001,
			Times: quota.Times{At: monday}},
	}, quota.Measure(h, a).Violations(), "a speculative reservation that costs more than a day's budget never clears")
}

func TestEachResourceHasItsLimit(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	c.Hold(hours(0, 9), quota.Vector{1, 10, 100, 1000, 2})
	exact := quota.Limits{GPUs: 2, GPUMemoryMiB: quota.AtMost(20), CPUs: quota.AtMost(200),
		MemoryMiB: quota.AtMost(2000), Bookings: quota.AtMost(3)}
	a := quota.Ask{Window: hours(8, 10), Demand: quota.Vector{1, 10, 100, 1000, 1}}
	require.Empty(t, quota.Measure(quota.Holdings{Limits: exact, Committed: &c}, a).Violations())
	for r := quota.GPUs; r <= quota.Bookings; r++ {
		more := a
		more.Demand[r]++
		found := quota.Measure(quota.Holdings{Limits: exact, Committed: &c}, more).Violations()
		require.Len(t, found, 1)
		require.Equal(t, r, found[0].Resource)
		require.Equal(t, found[0].Limit+1, found[0].Asked)
		require.NotEmpty(t, r.String())
	}
	loose := quota.Limits{GPUs: 2}
	a.Demand = quota.Vector{1, 1 << 40, 1 << 40, 1 << 40, 1 << 40}
	require.Empty(t, quota.Measure(quota.Holdings{Limits: loose, Committed: &c}, a).Violations(),
		"no limit is no limit")
}

func TestCapsHoldExactly(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	c.Add(hours(30, 34), gpus(6), quota.Spend{Cost: 12 * money.USD, GPUSeconds: 24 * 3600})
	caps := quota.Caps{MaxGPUs: 10, MaxPerDay: 20 * money.USD, MaxLead: 31 * time.Hour, MaxWindow: 2 * time.Hour,
		GPUHoursPerDay: quota.AtMost(32)}
	a := quota.Ask{Window: hours(31, 33), Demand: gpus(4), Spend: quota.Spend{Cost: 8 * money.USD,
		GPUSeconds: 8 * 3600}}
	require.Empty(t, quota.MeasureCaps(caps, &c, a, monday).Violations())
	require.Equal(t, []quota.Rule{quota.RuleNominal, quota.RuleMoney, quota.RuleLead, quota.RuleWindow},
		rulesOf(quota.MeasureCaps(quota.Caps{}, &c, a, monday).Violations()), "zero is none of it")
	a.Spend.GPUSeconds++
	require.Equal(t, []quota.Rule{quota.RuleGPUHours}, rulesOf(quota.MeasureCaps(caps, &c, a, monday).Violations()))
}

func TestCostFallsOnTheDayOfTheStart(t *testing.T) {
	t.Parallel()
	var c quota.Commitments
	require.Zero(t, c.On(monday), "nothing is committed yet")
	five := quota.Spend{Cost: 5 * money.USD, GPUSeconds: 7}
	c.Add(hours(23, 30), gpus(1), five)
	c.Spend(monday.AddDate(0, 0, 29), five) // the last of March
	require.Equal(t, five, c.On(monday.Add(12*time.Hour)))
	require.Zero(t, c.On(monday.Add(24*time.Hour)))
	require.Equal(t, quota.Spend{Cost: 10 * money.USD, GPUSeconds: 14}, c.In(quota.PerMonth, monday))
	require.Zero(t, c.In(quota.PerMonth, monday.AddDate(0, 1, 0)))
	require.Equal(t, []time.Time{monday, monday.AddDate(0, 0, 29)}, c.Days())

	tokyo := time.FixedZone("UTC+9", 9*60*60)
	require.Equal(t, monday, quota.Day(time.Date(2026, 3, 3, 8, 59, 0, 0, tokyo)), "a day is a UTC day")
	require.Equal(t, monday.Add(24*time.Hour), quota.Day(time.Date(2026, 3, 3, 9, 0, 0, 0, tokyo)))
	require.Equal(t, five, c.On(time.Date(2026, 3, 3, 8, 59, 0, 0, tokyo)))
	newYear := time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC)
	c.Spend(newYear, five)
	require.Equal(t, five, c.On(newYear.Add(-time.Hour)), "days before 1970 are days too")
	require.Zero(t, c.On(newYear.Add(time.Second)))
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	require.Equal(t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), quota.PerMonth.Start(last))
	require.Equal(t, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), quota.PerMonth.Next(last))
	require.Equal(t, time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), quota.PerDay.Start(last))
	require.Equal(t, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), quota.Period("").Next(last))
}

func TestDemandCountsANodesShare(t *testing.T) {
	t.Parallel()
	p := capacity.Pool{PerNode: 8, MemoryMiB: 81920, NodeCPUs: 100, NodeMemoryMiB: 1 << 20}
	require.Equal(t, quota.Vector{6, 6 * 81920, 2 * 38, 2 * 393216, 1},
		quota.Demand(p, capacity.Shape{Nodes: 2, PerNode: 3}), "12.5 CPUs a GPU, rounded up on each node")
	require.Zero(t, quota.Demand(p, capacity.Shape{}))
	require.Zero(t, quota.Demand(p, capacity.Shape{Nodes: -1, PerNode: -1}))
}

func TestLimitsOnTheWire(t *testing.T) {
	t.Parallel()
	limits := quota.Limits{GPUs: 3, Bookings: quota.AtMost(0), Lending: quota.Bounds{quota.CPUs: quota.AtMost(7)},
		Cohort: "research", Period: quota.PerMonth}
	text, err := json.Marshal(limits)
	require.NoError(t, err)
	var again quota.Limits
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, limits, again)
	require.Equal(t, int64(quota.Unlimited), again.CPUs.Int64())
	require.Equal(t, quota.Limit{}, quota.AtMost(quota.Unlimited))
	require.Error(t, json.Unmarshal([]byte(`{"Bookings":-2}`), &again))
	require.Error(t, json.Unmarshal([]byte(`{"Bookings":"many"}`), &again))
	huge := quota.Limits{GPUHours: quota.AtMost(math.MaxInt64)}
	require.Empty(t, quota.Measure(quota.Holdings{Limits: huge},
		quota.Ask{Window: hours(0, 1), Spend: quota.Spend{GPUSeconds: math.MaxInt64}}).Violations())
}

func TestCommitmentsCancelOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c quota.Commitments
		type entry struct {
			iv calendar.Interval
			v  quota.Vector
			s  quota.Spend
		}
		var all []entry
		for range rapid.IntRange(1, 10).Draw(t, "entries") {
			from := rapid.IntRange(0, 100).Draw(t, "from")
			e := entry{
				hours(from, from+rapid.IntRange(1, 40).Draw(t, "length")), drawVector(t, 9),
				quota.Spend{Cost: money.MicroUSD(rapid.Int64Range(0, 1e12).Draw(t, "cost")),
					GPUSeconds: rapid.Int64Range(0, 1e9).Draw(t, "seconds")},
			}
			all = append(all, e)
			c.Add(e.iv, e.v, e.s)
		}
		for _, e := range all {
			c.Remove(e.iv, e.v, e.s)
		}
		require.Zero(t, c.Peak(hours(-1, 200)))
		_, changes := c.Next(hours(-1, 0).Start)
		require.False(t, changes)
		require.Empty(t, c.Days())
	})
}

func drawVector(t *rapid.T, most int64) quota.Vector {
	var v quota.Vector
	for r := range v {
		v[r] = rapid.Int64Range(0, most).Draw(t, "amount")
	}
	return v
}
