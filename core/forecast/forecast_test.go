package forecast

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNegativeBinomialKnownValues(t *testing.T) {
	t.Parallel()
	poisson := NegativeBinomial(2, 2)
	require.InDelta(t, 1-math.Exp(-2), poisson.Any(), 1e-12)
	require.InDelta(t, 1-3*math.Exp(-2), poisson.AtLeast(2), 1e-12)
	require.Equal(t, 2, poisson.Quantile(0.5))

	// Mean 3, variance 6: size 3, success 1/2, so P(0) = 1/8 and P(1) = 3/16.
	counts := NegativeBinomial(3, 6)
	require.InDelta(t, 7.0/8, counts.Any(), 1e-12)
	require.InDelta(t, 11.0/16, counts.AtLeast(2), 1e-12)
	require.Equal(t, 1.0, counts.AtLeast(0))
	require.Equal(t, 0.0, counts.AtLeast(counts.Levels()+1))
}

func TestNegativeBinomialGuards(t *testing.T) {
	t.Parallel()
	for _, mean := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		require.Zero(t, NegativeBinomial(mean, 4).Levels(), "mean %v", mean)
	}
	require.Equal(t, MaxLevels, NegativeBinomial(math.Inf(1), 1).Quantile(0.01))
	require.InDelta(t, 2, NegativeBinomial(2, math.NaN()).Mean(), 1e-4)
	large := NegativeBinomial(1000, 1000)
	require.InDelta(t, 1000, large.Mean(), 0.5)
	require.InDelta(t, 1000, large.Quantile(0.5), 1)
	require.InDelta(t, 1041, large.Quantile(0.9), 2)
}

func TestNegativeBinomialKeepsItsMoments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		mean := rapid.Float64Range(0.05, 300).Draw(t, "mean")
		variance := mean * rapid.Float64Range(1, 6).Draw(t, "dispersion")
		f := NegativeBinomial(mean, variance)
		require.InEpsilon(t, mean, f.Mean(), 0.01)
		require.InEpsilon(t, variance, f.Variance(), 0.05)
	})
}

// anyForecast draws a forecast made in any of the ways there are.
func anyForecast(t *rapid.T, label string) Forecast {
	if rapid.Bool().Draw(t, label+" counts") {
		return NegativeBinomial(rapid.Float64Range(-1, 2000).Draw(t, label+" mean"),
			rapid.Float64Range(-1, 1e6).Draw(t, label+" variance"))
	}
	size := rapid.IntRange(-5, 2*MaxLevels)
	return Event(rapid.Float64().Draw(t, label+" p"), size.Draw(t, label+" low"), size.Draw(t, label+" mid"),
		size.Draw(t, label+" high"))
}

// requireSound fails unless f is a distribution.
func requireSound(t require.TestingT, f Forecast) {
	require.LessOrEqual(t, f.Levels(), MaxLevels)
	previous := 1.0
	for k := 1; k <= f.Levels(); k++ {
		p := f.AtLeast(k)
		require.False(t, math.IsNaN(p))
		require.LessOrEqual(t, p, previous)
		require.Positive(t, p)
		previous = p
	}
}

func TestEveryForecastIsADistribution(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := anyForecast(t, "f")
		requireSound(t, f)
		p, q := rapid.Float64Range(0, 1).Draw(t, "p"), rapid.Float64Range(0, 1).Draw(t, "q")
		require.LessOrEqual(t, f.Quantile(min(p, q)), f.Quantile(max(p, q)), "quantiles are ordered")
		if k := f.Quantile(p); k < f.Levels() {
			require.LessOrEqual(t, f.AtLeast(k+1), 1-p+1e-12, "P(arrivals <= quantile) >= p")
		}
		s := f.Summary()
		require.True(t, 0 <= s.P10 && s.P10 <= s.P50 && s.P50 <= s.P90)
	})
}

func TestEvent(t *testing.T) {
	t.Parallel()
	sure := Event(1, 4, 4, 4)
	require.Equal(t, 1.0, sure.AtLeast(4))
	require.Zero(t, sure.AtLeast(5))
	require.InDelta(t, 0.8, Event(0.8, 2, 4, 8).Any(), 1e-12)
	require.Zero(t, Event(math.NaN(), 1, 2, 3).Levels())
	require.Equal(t, 6, Event(1, 6, 2, 1).Levels(), "numbers out of order are put in order")
}

func TestClampAndBlendStayWithinTheirBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		baseline, model := anyForecast(t, "baseline"), anyForecast(t, "model")
		b := Bounds{
			Max:    rapid.IntRange(-1, 100).Draw(t, "max"),
			Floor:  rapid.IntRange(-1, 100).Draw(t, "floor"),
			Factor: rapid.Float64Range(-1, 4).Draw(t, "factor"),
		}
		clamped := b.Clamp(model, baseline)
		requireSound(t, clamped)
		require.LessOrEqual(t, clamped.Levels(), max(b.Max, 0))
		require.LessOrEqual(t, clamped.Levels(), b.Limit(baseline))

		weight := rapid.Float64().Draw(t, "weight")
		mixed := Blend(baseline, clamped, weight)
		requireSound(t, mixed)
		for k := 1; k <= mixed.Levels(); k++ {
			lo, hi := min(baseline.AtLeast(k), clamped.AtLeast(k)), max(baseline.AtLeast(k), clamped.AtLeast(k))
			require.True(t, lo-1e-12 <= mixed.AtLeast(k) && mixed.AtLeast(k) <= hi+1e-12)
		}
	})
}

func TestBoundsFollowTheBaselineOnlyByTheirFactor(t *testing.T) {
	t.Parallel()
	baseline := Event(1, 10, 10, 10)
	require.Equal(t, 15, Bounds{Max: 100, Factor: 1.5}.Limit(baseline))
	require.Equal(t, 6, Bounds{Max: 100, Floor: 6, Factor: 1.5}.Limit(Forecast{}))
	require.Equal(t, 12, Bounds{Max: 12, Floor: 6, Factor: 1.5}.Limit(baseline))
	require.Equal(t, 0, Bounds{Floor: 6, Factor: 1.5}.Limit(baseline))
}

func TestHighestDoesNotCountTwice(t *testing.T) {
	t.Parallel()
	said := Event(0.6, 2, 4, 8)
	require.Equal(t, said, Highest(said, said))
	require.InDelta(t, 0.9, Highest(said, Event(0.9, 1, 1, 1)).Any(), 1e-12)
}
