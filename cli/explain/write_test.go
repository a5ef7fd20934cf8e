package explain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// A time that is known is no span.
func TestClears(t *testing.T) {
	t.Parallel()
	monday := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	at := func(early, late time.Duration) contract.BlockedBy {
		return contract.BlockedBy{ClearsAt: &contract.InstantBand{P10: monday.Add(early), P90: monday.Add(late)}}
	}
	require.Equal(t, "  clears in 30s", clearsText(at(30*time.Second, 30*time.Second), monday))
	require.Equal(t, "  clears in 30s to 1m", clearsText(at(30*time.Second, time.Minute), monday))
}
