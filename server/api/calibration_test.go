package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

func TestRuntimesAreScored(t *testing.T) {
	t.Parallel()
	require.Nil(t, encodeRuntimes(ledger.PredictionScore{}), "nothing was predicted")
	require.Nil(t, encodeScore(ledger.PredictionScore{}))
	score := encodeScore(ledger.PredictionScore{N: 4, Inside: 0.75, Error: time.Minute, Pinball: time.Second,
		Measured: time.Hour})
	require.Equal(t, contract.TimeCalibration{Interval: contract.IntervalCoverage{Said: 0.8, Seen: 0.75, N: 4},
		MeanAbsoluteError: 60, MeanPinball: 1, MeanMeasuredLength: 3600}, *score)
	of := func(n int, inside, byMedian float64) ledger.JobPredictions {
		return ledger.JobPredictions{Runtimes: ledger.PredictionScore{N: n, Inside: inside, ByMedian: byMedian}}
	}
	got := encodeRuntimes(ledger.RuntimesOf([]ledger.JobPredictions{of(8, 0.75, 0.5), of(0, 0, 0), of(2, 0.5, 0)}))
	require.InDelta(t, 0.7, got.Interval.Seen, 1e-9)
	require.InDelta(t, 0.4, got.ByLikely, 1e-9)
	require.Equal(t, 10, got.Interval.N)
}
