package backtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	core "github.com/forewarm/forewarm/core/backtest"
)

// experimentWith is an experiment that came to hours of waiting and of waste with nothing
// kept, with a keep-alive and with Forewarm.
func experimentWith(reactive, keep, ours [2]float64) *experiment {
	outcome := func(hours [2]float64) core.Outcome { return core.Outcome{WaitHours: hours[0], IdleHours: hours[1]} }
	none := core.Outcome{WaitHours: 1e6}
	return &experiment{cfg: Config{WaitWorth: 10, GPUPrice: 2}.WithDefaults(), trials: []*trial{
		{policy: Reactive, main: true, out: outcome(reactive)},
		{policy: Schedule, main: true, out: none},
		{policy: KeepAlive, setting: "10m", keep: 600, out: outcome(keep)},
		{policy: LastWeek, main: true, out: none},
		{policy: Forewarm, main: true, out: outcome(ours)},
	}}
}

func TestBreakEvenIsTheExtraWasteForEachHourSaved(t *testing.T) {
	t.Parallel()
	r := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		name string
		e    *experiment
		want BreakEven
	}{
		{"less waiting, more waste", experimentWith([2]float64{50, 0}, [2]float64{20, 40}, [2]float64{10, 100}),
			BreakEven{Against: KeepAlive, Worth: Above, WaitWorth: r(6), USD: r(12)}},
		{"more waiting, less waste", experimentWith([2]float64{50, 0}, [2]float64{20, 40}, [2]float64{22, 30}),
			BreakEven{Against: KeepAlive, Worth: Below, WaitWorth: r(5), USD: r(10)}},
		{"less of both", experimentWith([2]float64{50, 0}, [2]float64{20, 40}, [2]float64{10, 40}),
			BreakEven{Against: KeepAlive, Worth: Always}},
		{"more of both", experimentWith([2]float64{1, 0}, [2]float64{20, 40}, [2]float64{10, 40}),
			BreakEven{Against: Reactive, Worth: Never}},
		{"the same", experimentWith([2]float64{50, 0}, [2]float64{20, 40}, [2]float64{20, 40}),
			BreakEven{Against: KeepAlive, Worth: Never}},
	} {
		require.Equal(t, &c.want, c.e.breakEven(), c.name)
	}
}

func TestForewarmIsAdvisedOnlyWhereItClearlyWins(t *testing.T) {
	t.Parallel()
	long := Past{Scored: fewestJobs, From: monday, To: monday.Add(shortest)}
	for _, c := range []struct {
		name string
		ours [2]float64 // beside a keep-alive that costs 240
		use  string
		text string
	}{
		{"it wins", [2]float64{10, 100}, Forewarm, "cost 17 % less"},
		{"it wins by chance", [2]float64{13, 108}, KeepAlive, "only 0.8 % less"},
		{"it loses", [2]float64{20, 100}, KeepAlive, "25 % more"},
	} {
		e := experimentWith([2]float64{50, 0}, [2]float64{20, 40}, c.ours)
		r := Report{History: long}
		e.fillAdvice(&r)
		require.Equal(t, c.use, r.Advice.Use, c.name)
		require.Contains(t, r.Advice.Text[0], c.text, c.name)
	}
	e := experimentWith([2]float64{50, 0}, [2]float64{20, 40}, [2]float64{10, 100})
	for _, short := range []Past{
		{Scored: fewestJobs - 1, From: long.From, To: long.To},
		{Scored: fewestJobs, From: long.From, To: long.To.Add(-1)},
	} {
		r := Report{History: short}
		e.fillAdvice(&r)
		require.Equal(t, NotKnown, r.Advice.Use)
		require.Nil(t, r.BreakEven)
	}
}

func TestOfEqualRulesTheSimplestIsTheRival(t *testing.T) {
	t.Parallel()
	e := experimentWith([2]float64{20, 40}, [2]float64{20, 40}, [2]float64{0, 0})
	require.Equal(t, Reactive, e.cheapestRival().policy)
}

func TestReliabilityTellsWhatCameTrue(t *testing.T) {
	t.Parallel()
	counts := newReliability()
	for i := range 10 {
		counts.addStatement(0.31, i < 3)
	}
	counts.addStatement(1, true)
	counts.addStatement(-1, false)
	require.Equal(t, []Calibrated{
		{Stated: -1, Seen: 0, N: 1}, {Stated: 0.31, Seen: 0.3, N: 10}, {Stated: 1, Seen: 1, N: 1}},
		counts.calibrationSteps())
}
