package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/plan"
)

func TestKeep(t *testing.T) {
	t.Parallel()
	idle := plan.KeepFacts{
		Price: 20 * money.USD, Wait: 100 * money.USD, Boot: 5 * time.Minute, Idle: 20 * time.Minute,
		Latest:  4 * time.Hour,
		Watched: 200, Evidence: 24, Patience: 0.5,
	}
	for name, c := range map[string]struct {
		change func(f *plan.KeepFacts)
		keep   bool
		reason string
	}{
		"nobody comes, and it idled for long enough": {func(*plan.KeepFacts) {}, false, plan.ReasonUnlikely},
		"half the break-even is not reached": {func(f *plan.KeepFacts) { f.Idle = 10 * time.Minute }, true,
			plan.ReasonTooEarly},
		"somebody comes every half hour": {func(f *plan.KeepFacts) { f.Expected = 8 }, true,
			plan.ReasonWorthKeeping},
		"but ten idle nodes are taken before it": {func(f *plan.KeepFacts) { f.Expected, f.Ahead = 8, 10 }, false,
			plan.ReasonUnlikely},
		"the hour is paid for already": {func(f *plan.KeepFacts) { f.Prepaid = 40 * time.Minute }, true,
			plan.ReasonTooEarly},
		"all the time that it may idle is paid for": {func(f *plan.KeepFacts) { f.Prepaid = 4 * time.Hour }, true,
			plan.ReasonWorthKeeping},
		"a booking begins before a node could boot": {func(f *plan.KeepFacts) { f.Booked = 4 * time.Minute }, true,
			plan.ReasonWorthKeeping},
		"a booking begins long after that": {func(f *plan.KeepFacts) { f.Booked = time.Hour }, false,
			plan.ReasonUnlikely},
		"too little was seen to know": {func(f *plan.KeepFacts) { f.Watched = 23 }, true,
			plan.ReasonNoEvidence},
		"it costs nothing": {func(f *plan.KeepFacts) { f.Price = 0 }, true,
			plan.ReasonNoEvidence},
		"its time is over, however likely a use": {func(f *plan.KeepFacts) {
			f.Idle, f.Expected = 4*time.Hour,
				1000
		}, false, plan.ReasonIdle},
	} {
		f := idle
		c.change(&f)
		v := plan.Keep(f)
		require.Equal(t, c.keep, v.Keep, "%s: %s", name, v)
		require.Equal(t, c.reason, v.Reason, name)
		require.LessOrEqual(t, v.Until, f.Latest, name)
		require.GreaterOrEqual(t, v.Until, f.Idle, name)
	}
	require.Equal(t, 30*time.Minute, plan.Keep(idle).BreakEven,
		"holding for half an hour costs a boot and five minutes of waiting")
}

// One more is expected in the three hours that are left, in which holding costs $60.
func TestTheNumbersOfAVerdict(t *testing.T) {
	t.Parallel()
	f := plan.KeepFacts{
		Price: 20 * money.USD, Wait: 100 * money.USD, Boot: 6 * time.Minute, Idle: time.Hour, Latest: 4 * time.Hour,
		Expected: 1, Watched: 24, Evidence: 24,
	}
	used := 1 - math.Exp(-1)
	micro := func(dollars float64) money.MicroUSD { return money.MicroUSD(math.Round(dollars * float64(money.USD))) }
	v := plan.Keep(f)
	require.InDelta(t, used, v.Use, 1e-9)
	require.NotEqual(t, plan.ReasonNoEvidence, v.Reason, "a day of evidence is enough")
	require.Equal(t, micro(60*used), v.Holding, "until somebody comes, or the time is over")
	require.Equal(t, micro(used*12), v.Releasing, "a boot of $2, and $10 of waiting")
	require.Equal(t, 36*time.Minute, v.BreakEven)

	f.Booked = 3 * time.Hour
	v = plan.Keep(f)
	require.Equal(t, micro(used*12+(1-used)*2), v.Releasing, "the node of a booking is made in time")
	f.Booked++
	require.Equal(t, micro(used*12), plan.Keep(f).Releasing, "one that begins later is not waited for")

	f.Ahead = 1
	require.InDelta(t, 1-2*math.Exp(-1), plan.Keep(f).Use, 1e-9, "two must come")
	f.Expected = 0.5
	require.InDelta(t, 1-1.5*math.Exp(-0.5), plan.Keep(f).Use, 1e-9)
	f.Price, f.Ahead = 1, 0
	f.Wait = math.MaxInt64
	require.Positive(t, plan.Keep(f).BreakEven, "never is not before now")
	f.Price = 0
	v = plan.Keep(f)
	require.Equal(t, plan.ReasonNoEvidence, v.Reason)
	require.Equal(t, f.Latest, v.BreakEven)
	require.Zero(t, v.Holding)
}

func drawKeep(r *rapid.T) plan.KeepFacts {
	minutes := func(label string, from, to int) time.Duration {
		return time.Duration(rapid.IntRange(from, to).Draw(r, label)) * time.Minute
	}
	return plan.KeepFacts{
		Price: money.MicroUSD(rapid.IntRange(1, 100).Draw(r, "price")) * money.USD,
		Wait:  money.MicroUSD(rapid.IntRange(0, 1000).Draw(r, "wait")) * money.USD,
		Boot:  minutes("boot", 1, 20), Idle: minutes("idle", 0, 300), Latest: minutes("latest", 0, 300),
		Prepaid: minutes("prepaid", 0, 60),
		Booked:  minutes("booked", 0, 300), Expected: float64(rapid.IntRange(0, 400).Draw(r, "expected")) / 10,
		Ahead: rapid.IntRange(0, 10).Draw(r, "ahead"), Watched: 100, Evidence: 24,
		Patience: float64(rapid.IntRange(0, 10).Draw(r, "patience")) / 10,
	}
}

func TestKeepingIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		f := drawKeep(r)
		v := plan.Keep(f)
		require.Equal(r, v, plan.Keep(f))
		require.InDelta(r, 0.5, v.Use, 0.5)
		require.GreaterOrEqual(r, v.Holding, money.MicroUSD(0))
		require.False(r, v.Keep && f.Idle >= f.Latest, "never longer than the timer")
		likelier, dearer, first := f, f, f
		likelier.Expected += float64(rapid.IntRange(1, 100).Draw(r, "more")) / 10
		dearer.Price += money.MicroUSD(rapid.IntRange(1, 100).Draw(r, "dearer")) * money.USD
		first.Ahead = rapid.IntRange(0, f.Ahead).Draw(r, "fewer ahead")
		require.False(r, v.Keep && !plan.Keep(likelier).Keep, "likelier: %v then %v", v, plan.Keep(likelier))
		require.False(r, !v.Keep && plan.Keep(dearer).Keep, "dearer: %v then %v", v, plan.Keep(dearer))
		require.False(r, v.Keep && !plan.Keep(first).Keep, "sooner taken: %v then %v", v, plan.Keep(first))
	})
}
