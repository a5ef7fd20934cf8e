package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/forecast"
)

// Numbers that come from the distribution itself are inside the interval in 80 %
// of the cases, however coarse the numbers; others are not.
func TestTheIntervalOfATrueDistributionCoversItsShare(t *testing.T) {
	t.Parallel()
	inside := func(said, true float64) float64 {
		c := &calibration{draw: newDraw()}
		f, draw, n := forecast.Event(said, 1, 2, 4), *newSplitMix("truth"), 0
		came := forecast.Event(true, 1, 2, 4)
		for range 20_000 {
			rise, u := 0, draw.nextFloat()
			for came.AtLeast(rise+1) > u {
				rise++
			}
			if p := c.placeInQuantiles(f, rise); p >= 0.1 && p <= 0.9 {
				n++
			}
		}
		return float64(n) / 200
	}
	for _, p := range []float64{0.02, 0.3, 0.9} {
		require.InDelta(t, 80, inside(p, p), 1)
	}
	require.Less(t, inside(0.02, 0.5), 70.0)
}

// A look is closed with the highest rise of its ten minutes, and not with a
// later one.
func TestLooksAreClosedWithTheirOwnTenMinutes(t *testing.T) {
	t.Parallel()
	c := &calibration{draw: newDraw(), last: 10_000}
	x := checks{to: c}
	x.noteLook(1000, forecast.Outlook{Demand: 4})
	x.noteLook(1030, forecast.Outlook{Demand: 4}) // too soon
	x.noteLook(1100, forecast.Outlook{Demand: 9})
	x.noteRise(1600, 5)  // the last second of the first
	x.noteRise(1601, 20) // only of the second
	x.closeLooksUntil(3000)
	require.Equal(t, 2, c.bins[0].looks)
	require.Equal(t, 2, c.bins[0].rises)
	y := checks{to: c}
	y.noteLook(4000, forecast.Outlook{Demand: 4})
	y.noteRise(4601, 9)
	y.closeLooksUntil(9000)
	require.Equal(t, 3, c.bins[0].looks)
	require.Equal(t, 2, c.bins[0].rises)
	y.noteLook(9500, forecast.Outlook{}) // its ten minutes are not scored
	require.Empty(t, y.open)
}

// The policy learns how often jobs come, and pays for no more than that saves. At 128 idle
// GPU-hours for an hour of waiting, a trace without any rhythm is worth holding GPUs for.
func TestForewarmWaitsLessThanReactive(t *testing.T) {
	t.Parallel()
	trace := drawnTrace(7, 6, "a", "b")
	s := &scenario{name: "drawn", trace: trace, boot: 300}
	re, err := backtest.Run(trace, backtest.Options{Boot: 300})
	require.NoError(t, err)
	fleet := forecast.NewOnlineModel(forecast.BuiltIn())
	got, err := backtest.Run(trace, backtest.Options{Boot: 300,
		Policy: newForewarmPolicies(s, fleet, 128, newCalibration(trace))})
	require.NoError(t, err)
	require.Less(t, got.Mean, re.Mean/1.5)
	require.Less(t, got.Cost(128), 0.9*re.Cost(128))
	none, err := backtest.Run(trace, backtest.Options{Boot: 300,
		Policy: newForewarmPolicies(s, forecast.NewOnlineModel(forecast.BuiltIn()), 0, nil)})
	require.NoError(t, err)
	require.InDelta(t, re.Mean, none.Mean, 1e-9, "who gives nothing for waiting holds nothing")
}
