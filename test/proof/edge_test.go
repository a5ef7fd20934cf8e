package proof_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// The edge of a quota: many more ask at once than may get.
const (
	edgeClients  = 64
	edgeRequests = 1000
	edgeQuota    = 137
)

// atTheEdge lets all clients ask at once for GPUs over one window, and recounts
// what was admitted.
func atTheEdge(t *testing.T, url string, servers int) {
	t.Helper()
	s := newSite(t, url, want{servers: servers, nodes: 40, perNode: 8, quota: edgeQuota})
	start := time.Now().UTC().Truncate(time.Hour).Add(48 * time.Hour)
	in := contract.ReservationCreate{Pool: "lab", GPUs: 1, Start: start, End: start.Add(time.Hour)}

	requests := make(chan int, edgeRequests)
	for i := range edgeRequests {
		requests <- i
	}
	close(requests)
	admitted, refused := map[string]bool{}, 0
	var mu sync.Mutex
	var faults []error
	var wait sync.WaitGroup
	for i := range edgeClients {
		wait.Go(func() {
			for range requests {
				r, err := repeatUntilAnswered(t.Context(), func(ctx context.Context) (contract.Reservation, error) {
					return s.clients[i%servers].Reserve(ctx, in, client.Options{})
				})
				mu.Lock()
				var problem *client.Error
				switch {
				case err == nil:
					admitted[r.ID] = true
				case errors.As(err, &problem) && problem.Problem.Code == contract.CodeQuotaExceeded:
					refused++
				default:
					faults = append(faults, err)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	require.Empty(t, faults)
	require.Len(t, admitted, edgeQuota)
	require.Equal(t, edgeRequests-edgeQuota, refused)

	rows := s.readRows(true)
	require.Len(t, rows.Pools[0].Reservations, edgeQuota, "rows of the pool")
	require.Empty(t, rows.OverReservations)
	for _, r := range rows.Pools[0].Reservations {
		require.True(t, admitted[r.ID], "%s is stored and was not acknowledged", r.ID)
	}
	require.Equal(t, edgeQuota, rows.Committed[s.org].At(start), "the ledger's count")
	s.requireSound()
}

// TestEdgeSQLite: one server, SQLite.
func TestEdgeSQLite(t *testing.T) {
	t.Parallel()
	atTheEdge(t, "sqlite://:memory:", 1)
}
