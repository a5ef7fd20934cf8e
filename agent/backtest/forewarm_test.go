package backtest

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	core "github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// planHistory lets the model read a history at a worth of 8 and of 128.
func planHistory(t *testing.T, jobs core.Trace) *plans {
	t.Helper()
	p, err := planWithModel(t.Context(), jobs, Config{}.WithDefaults(), []float64{8, 128}, func(float64) {})
	require.NoError(t, err)
	return p
}

func prepareTrace(t *testing.T, days int) core.Trace {
	t.Helper()
	p, err := prepareInput(Input{Records: burstHistory(days)}, Config{}.WithDefaults())
	require.NoError(t, err)
	return p.trace
}

func TestWhatComesLaterChangesNoDecision(t *testing.T) {
	t.Parallel()
	whole := prepareTrace(t, 6)
	cut := whole
	cut.Jobs = whole.Jobs[:40]
	end := cut.Jobs[39].Submit
	early := func(steps []core.Step) []core.Step {
		return slices.DeleteFunc(slices.Clone(steps), func(s core.Step) bool { return s.At > end })
	}
	long, short := planHistory(t, whole), planHistory(t, cut)
	for worth := range long.targets {
		want := early(long.targets[worth][0])
		require.NotEmpty(t, want)
		require.Equal(t, want, early(short.targets[worth][0]))
	}
}

func TestWaitingThatIsWorthMoreIsNeverGivenLess(t *testing.T) {
	t.Parallel()
	p := planHistory(t, prepareTrace(t, 6))
	cheap, dear := &replay{steps: p.targets[0][0]}, &replay{steps: p.targets[1][0]}
	level, more := 0, false
	for dear.Next() < cheap.Next() || cheap.done < len(cheap.steps) {
		now := min(dear.Next(), cheap.Next())
		if cheap.Next() == now {
			level = cheap.Target(now)
		}
		high := 0
		if dear.Next() == now {
			high = dear.Target(now)
		} else {
			high = dear.steps[dear.done-1].Level
		}
		require.GreaterOrEqual(t, high, level, "second %d", now)
		more = more || high > level
	}
	require.True(t, more)
}

func TestAStatementIsCountedOnceItIsKnown(t *testing.T) {
	t.Parallel()
	none := forecast.Outlook{Demand: 4}
	for _, c := range []struct {
		name  string
		at    int64 // of a rise
		level int
		looks []int64
		want  []Calibrated
	}{
		{"it rises in time", 700, 5, []int64{100, 300, 700}, []Calibrated{{Stated: 0, Seen: 1, N: 1}}},
		{"it rises too late", 701, 5, []int64{100, 300, 800}, []Calibrated{{Stated: 0, Seen: 0, N: 1}}},
		{"it does not rise", 200, 4, []int64{100, 700}, []Calibrated{{Stated: 0, Seen: 0, N: 1}}},
		{"not known yet", 200, 5, []int64{100, 699}, []Calibrated{}},
		{"before anything is scored", 40, 5, []int64{50, 700}, []Calibrated{}},
		{"it would come out after the end", 960, 5, []int64{950, 2000}, []Calibrated{}},
	} {
		s, counts := statement{from: 50, last: 1500}, newReliability()
		s.noteChance(c.looks[0], none, counts)
		s.noteDemand(c.at, c.level)
		for _, now := range c.looks[1:] {
			s.noteChance(now, none, counts)
		}
		require.Equal(t, c.want, counts.calibrationSteps(), c.name)
	}
}

func TestWhatTheModelRefusesIsTold(t *testing.T) {
	t.Parallel()
	crowd := core.Trace{Jobs: []core.Job{{Submit: 1, Duration: 1, GPUs: 1}}}
	for i := range 10_001 {
		crowd.Tenants = append(crowd.Tenants, strconv.Itoa(i))
	}
	c := Config{}.WithDefaults()
	_, err := planWithModel(t.Context(), crowd, c, []float64{1}, func(float64) {})
	require.ErrorIs(t, err, forecast.ErrClasses)
	_, err = planWithModel(t.Context(), core.Trace{Tenants: []string{"a"},
		Jobs: []core.Job{{Submit: -9, Duration: 1, GPUs: 1}}}, c, []float64{1}, func(float64) {})
	require.ErrorIs(t, err, forecast.ErrTime)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = planWithModel(stopped, prepareTrace(t, 2), c, []float64{1}, func(float64) {})
	require.ErrorIs(t, err, context.Canceled)
}
