package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

func TestRuntimesAreScored(t *testing.T) {
	t.Parallel()
	require.Nil(t, encodeRuntimes(ledger.RuntimeCoverage{}), "nothing was predicted")
	got := encodeRuntimes(ledger.RuntimeCoverage{Runs: 10, BelowP10: 1, ByP50: 4, ByP90: 8})
	require.InDelta(t, 0.7, got.Interval.Seen, 1e-9)
	require.InDelta(t, 0.4, got.ByLikely, 1e-9)
	require.Equal(t, 10, got.Interval.N)
}
