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
	require.Nil(t, encodeRuntimes(ledger.RuntimeCoverage{}), "nothing was predicted")
	require.Nil(t, encodeScore(ledger.PredictionScore{}))
	score := encodeScore(ledger.PredictionScore{N: 4, Inside: 0.75, Error: time.Minute, Pinball: time.Second,
		Measured: time.Hour})
	require.Equal(t, contract.TimeCalibration{Interval: contract.IntervalCoverage{Said: 0.8, Seen: 0.75, N: 4},
		MeanAbsoluteError: 60, MeanPinball: 1, MeanMeasuredLength: 3600}, *score)
	got := encodeRuntimes(ledger.RuntimeCoverage{Runs: 10, BelowP10: 1, ByP50: 4, ByP90: 8})
	require.InDelta(t, 0.7, got.Interval.Seen, 1e-9)
	require.InDelta(t, 0.4, got.ByLikely, 1e-9)
	require.Equal(t, 10, got.Interval.N)
}
