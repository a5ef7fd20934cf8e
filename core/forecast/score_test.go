package forecast

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLogLoss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		probability float64
		happened    bool
		want        float64
	}{
		{0.5, true, math.Ln2},
		{0.5, false, math.Ln2},
		{0.8, true, -math.Log(0.8)},
		{0.8, false, -math.Log(0.2)},
		{1, true, -math.Log1p(-certain)},
		{0, true, -math.Log(certain)},
		{1, false, -math.Log(certain)},
		{-7, true, -math.Log(certain)},
		{7, false, -math.Log(certain)},
		{math.NaN(), true, math.Ln2},
	} {
		require.InDelta(t, c.want, LogLoss(c.probability, c.happened), 1e-9, "%+v", c)
	}
}

// Saying the true probability is best in expectation, by both scores.
func TestHonestyIsBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		truth := rapid.Float64Range(0.01, 0.99).Draw(t, "truth")
		said := rapid.Float64Range(0, 1).Draw(t, "said")
		expected := func(score func(float64, bool) float64, p float64) float64 {
			return truth*score(p, true) + (1-truth)*score(p, false)
		}
		for name, score := range map[string]func(float64, bool) float64{"brier": Brier, "log loss": LogLoss} {
			require.LessOrEqual(t, expected(score, truth), expected(score, said)+1e-12, name)
		}
	})
}

func TestSkill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		brier, reference, want float64
		ok                     bool
	}{
		{0, 0.2, 1, true}, {0.2, 0.2, 0, true}, {0.3, 0.2, -0.5, true}, {0.1, 0, 0, false}, {0.1, math.NaN(), 0, false},
	} {
		got, ok := Skill(c.brier, c.reference)
		require.Equal(t, c.ok, ok, "%+v", c)
		require.InDelta(t, c.want, got, 1e-12, "%+v", c)
	}
}

// A scorer's log loss is the mean of the scores', as its other numbers are.
func TestScorerTakesTheLogLoss(t *testing.T) {
	t.Parallel()
	var s Scorer
	said := Summary{P10: 0, P50: 2, P90: 4, Any: 0.8, Mean: 2}
	s.Add(said.Evaluate(3))
	s.Add(said.Evaluate(0))
	require.InDelta(t, (-math.Log(0.8)-math.Log(0.2))/2, s.LogLoss, 1e-12)
	require.InDelta(t, 1, s.Inside, 1e-12)
}
