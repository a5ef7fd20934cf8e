package evidence_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/evidence"
)

func logLoss(p float64, came bool) float64 {
	if !came {
		p = 1 - p
	}
	return -math.Log(math.Max(0.01, math.Min(0.99, p)))
}

// blendForecasts is what a forecast made of both says.
func blendForecasts(b *evidence.TrackRecords, r evidence.Record, baseline float64) float64 {
	say := b.Weight(r.Source, r.Reason)
	return (1-say)*baseline + say*b.Chance(r, baseline)
}

// Whatever evidence says and whatever happens, the mixture's log loss stays near
// that of statistics alone: ln(4/3) and a hundredth per close.
func TestTheRegretAgainstStatisticsIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, err := evidence.New(evidence.Config{Allowance: 1})
		require.NoError(t, err)
		regret, n := 0.0, rapid.IntRange(1, 120).Draw(t, "closes")
		probability := rapid.Float64Range(0.01, 0.99)
		for range n {
			r := believableRecord()
			r.Probability = rapid.OneOf(probability, rapid.Just(0.0), rapid.Just(1.0)).Draw(t, "stated")
			baseline, came := probability.Draw(t, "baseline"), rapid.Bool().Draw(t, "came")
			say := b.Weight(r.Source, r.Reason)
			require.True(t, say >= 0 && say <= evidence.MaxWeight)
			p := blendForecasts(b, r, baseline)
			require.True(t, p > 0 && p < 1)
			regret += logLoss(p, came) - logLoss(baseline, came)
			b.Score(r, baseline, came)
		}
		if bound := math.Log(4.0/3) + 0.0101*float64(n); regret > bound {
			t.Fatalf("%v nats worse than statistics after %d closes, at most %v are allowed", regret, n, bound)
		}
	})
}

// closeRepeatedly plays closes in which need comes every third time; a true source knows
// when, an inverted one says the opposite.
func closeRepeatedly(b *evidence.TrackRecords, closes int, inverted bool) (gain float64) {
	for i := range closes {
		came := i%3 == 0
		r := believableRecord()
		r.Probability = 0.05
		if came != inverted {
			r.Probability = 0.95
		}
		gain += logLoss(0.33, came) - logLoss(blendForecasts(b, r, 0.33), came)
		b.Score(r, 0.33, came)
	}
	return gain
}

func TestASabotagedForecasterIsDemotedWithinTwentyCloses(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 1})
	require.InDelta(t, 0.25, b.Weight("llm", "announced"), 1e-12, "a new source has a quarter of the say")
	require.Greater(t, closeRepeatedly(b, 100, false), 20.0)
	require.Equal(t, evidence.MaxWeight, b.Weight("llm", "announced"), "and never more than half")
	require.Greater(t, closeRepeatedly(b, 20, true), -20.0)
	require.Zero(t, b.Weight("llm", "announced"))
	require.Zero(t, closeRepeatedly(b, 7, true), "who is demoted has no say")
	require.Zero(t, b.Weight("llm", "other"), "with any reason")
	closeRepeatedly(b, 60, false)
	require.Positive(t, b.Weight("llm", "announced"), "and is listened to when right again")
}

func TestStatedChancesAreCalibrated(t *testing.T) {
	t.Parallel()
	b := newTrackRecords(t, evidence.Config{Allowance: 1})
	r := believableRecord()
	r.Probability = 0.9
	require.InDelta(t, 0.9, b.Chance(r, 0.3), 1e-9, "a new source is taken at its word, with a quarter of the say")
	for i := range 300 {
		b.Score(r, 0.3, i%2 == 0)
	}
	require.InDelta(t, 0.5, b.Chance(r, 0.3), 0.05, "nine of ten, says who is right one time in two")
	low, high := b.Chance(r, 0.05), b.Chance(r, 0.6)
	require.Less(t, low, 0.3, "the odds of statistics are changed, not replaced")
	require.Greater(t, high, 0.6)
}

func TestChancesAreMonotoneInWhatIsStated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, err := evidence.New(evidence.Config{Allowance: 1})
		require.NoError(t, err)
		r, p := believableRecord(), rapid.Float64Range(0, 1)
		for range rapid.IntRange(0, 50).Draw(t, "closes") {
			r.Probability = p.Draw(t, "stated")
			b.Score(r, p.Draw(t, "baseline"), rapid.Bool().Draw(t, "came"))
		}
		baseline := p.Draw(t, "now")
		r.Probability = p.Draw(t, "less")
		less := b.Chance(r, baseline)
		r.Probability = rapid.Float64Range(r.Probability, 1).Draw(t, "more")
		if more := b.Chance(r, baseline); more < less-1e-12 || math.IsNaN(more) {
			t.Fatalf("%v, then %v", less, more)
		}
	})
}
