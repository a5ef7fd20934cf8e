package problem

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// Of two offers that are nearly the same the rounder is left.
func TestNearlyEqualOffers(t *testing.T) {
	t.Parallel()
	monday := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	offer := func(pool string, start, length time.Duration) contract.Offer {
		return contract.Offer{PoolID: pool, GPUs: 2, Start: monday.Add(start), End: monday.Add(start + length)}
	}
	week := 7 * 24 * time.Hour
	offers := []contract.Offer{offer("a", 0, week), offer("a", 18*time.Second, week-18*time.Second),
		offer("b", 0, week-18*time.Second),
		offer("a", 0, time.Hour), offer("a", 2*time.Hour, time.Hour), offer("c", 0, 9*time.Minute),
		offer("c", 0, 8*time.Minute+15*time.Second),
		offer("d", 0, 5*time.Minute), offer("d", 0, 5*time.Minute)}
	var odd []int
	for i := range offers {
		if oddOne(offers, i) {
			odd = append(odd, i)
		}
	}
	require.Equal(t, []int{1, 6, 8}, odd)
	claims := []contract.Offer{offer("a", 0, week+18*time.Second), offer("a", 18*time.Second, week)}
	claims[0].ReservationID, claims[1].ReservationID = "rsv_1", "rsv_1"
	require.False(t, oddOne(claims, 0), "from when on it may be claimed is what was said")
	require.True(t, oddOne(claims, 1))
}
