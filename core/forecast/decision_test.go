package forecast

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDecideKeepsALevelExactlyWhenItPays(t *testing.T) {
	t.Parallel()
	// Threshold 6 min / (8 · 5 min) = 0.15, that is 1.2/r at a boot of 300 s.
	costs := Costs{R: 8, Boot: 5 * time.Minute, Horizon: 6 * time.Minute}
	require.InDelta(t, 0.15, costs.Threshold(), 1e-12)
	d := Decide(Highest(Event(0.5, 2, 2, 2), Event(0.1, 6, 6, 6)), costs)
	require.Equal(t, Decision{Levels: 2, Threshold: costs.Threshold(), Kept: 0.5, Refused: 0.1}, d)
	require.Contains(t, d.Explain(), "hold 2")

	costs.JobGPUs = 4
	require.Zero(t, HoldLevels(Event(0.5, 2, 2, 2), costs), "one GPU of a gang of four saves a quarter of a job's wait")
	require.Contains(t, Decide(Forecast{}, costs).Explain(), "hold none")
}

func TestDecideWithoutAPriceOfWaitingHoldsNothing(t *testing.T) {
	t.Parallel()
	certain := Event(1, 8, 8, 8)
	for _, c := range []Costs{
		{},
		{R: 8, Horizon: time.Hour},
		{R: math.NaN(), Boot: time.Hour, Horizon: time.Hour},
		{R: -1, Boot: time.Hour, Horizon: time.Hour},
	} {
		require.Zero(t, HoldLevels(certain, c), "%+v", c)
	}
}

func TestHoldLevelsIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.Float64Range(0, 1e6)
		c := Costs{R: r.Draw(t, "r"), Boot: 5 * time.Minute, Horizon: time.Hour, JobGPUs: rapid.Float64Range(0, 64).Draw(t, "size")}
		dearer := c
		dearer.R += r.Draw(t, "more")
		f := anyForecast(t, "f")
		require.LessOrEqual(t, HoldLevels(f, c), HoldLevels(f, dearer), "worth more, hold more")
		likelier := Highest(f, anyForecast(t, "g"))
		require.LessOrEqual(t, HoldLevels(f, c), HoldLevels(likelier, c), "likelier, hold more")
		n := HoldLevels(f, c)
		require.True(t, n == 0 || f.AtLeast(n) >= c.Threshold())
		require.True(t, n == f.Levels() || f.AtLeast(n+1) < c.Threshold())
	})
}

func TestScores(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 1.8, Pinball(0.9, 2, 4), 1e-12)
	require.InDelta(t, 0.2, Pinball(0.9, 4, 2), 1e-12)
	require.InDelta(t, 0.04, Brier(0.8, true), 1e-12)
	require.InDelta(t, 0.64, Brier(0.8, false), 1e-12)
	s := Summary{P10: 0, P50: 2, P90: 4, Any: 0.8}
	score := s.Evaluate(2)
	require.InDelta(t, 0.4/3, score.Pinball, 1e-12)
	require.InDelta(t, 0.04, score.Brier, 1e-12)
	require.True(t, score.Inside)
	require.False(t, s.Evaluate(5).Inside)
}

// A quantile loss is smallest in expectation at the true quantile: this is what
// makes it a fair score.
func TestPinballRewardsTheTrueQuantile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := NegativeBinomial(rapid.Float64Range(0.1, 20).Draw(t, "mean"), rapid.Float64Range(0.1, 80).Draw(t, "variance"))
		p := rapid.SampledFrom([]float64{0.1, 0.5, 0.9}).Draw(t, "p")
		expected := func(predicted int) float64 {
			sum := 0.0
			for k := 0; k <= f.Levels(); k++ {
				sum += (f.AtLeast(k) - f.AtLeast(k+1)) * Pinball(p, float64(predicted), float64(k))
			}
			return sum
		}
		other := rapid.IntRange(0, 60).Draw(t, "other")
		require.LessOrEqual(t, expected(f.Quantile(p)), expected(other)+1e-3)
	})
}

func TestScorerKeepsTheMean(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s Scorer
		sum, inside := 0.0, 0
		losses := rapid.SliceOfN(rapid.Float64Range(0, 100), 1, 50).Draw(t, "losses")
		for _, loss := range losses {
			in := loss < 50
			if in {
				inside++
			}
			sum += loss
			s.Add(Score{Pinball: loss, Brier: loss / 100, Inside: in})
		}
		n := float64(len(losses))
		require.Equal(t, int64(len(losses)), s.N)
		require.InDelta(t, sum/n, s.Pinball, 1e-9)
		require.InDelta(t, sum/n/100, s.Brier, 1e-9)
		require.InDelta(t, float64(inside)/n, s.Inside, 1e-9)
		data, err := json.Marshal(s)
		require.NoError(t, err)
		var back Scorer
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, s, back)
	})
}
