//go:build services

package sqlledger_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// TestSendersInManyProcesses: the same forecasts and outcomes are sent at once to
// many processes, in different orders. Each is recorded once, and no sender is
// refused. A sender that then says something else is.
func TestSendersInManyProcesses(t *testing.T) {
	t.Parallel()
	address := sharedDatabase(t)
	actor := ledger.Actor{KeyID: "key_1", Kind: ledger.AgentKey, OrganizationID: "org_1", Role: ledger.Member}
	const senders, n = 4, 200
	// The database's clock cannot be set; but a window that is over may still be
	// sent.
	start := time.Now().Add(-time.Minute)
	var said []ledger.Forecast
	var seen []ledger.ForecastClosing
	for i := range n {
		f := ledger.Forecast{
			ID: fmt.Sprintf("fct_%03d", i), PoolID: "pol_1", Source: ledger.ByRule, ReasonCode: "other",
			IssuedAt: start, Start: start, End: start.Add(time.Second), Said: forecast.Summary{P90: 1, Any: 0.5},
		}
		said, seen = append(said, f), append(seen, ledger.ForecastClosing{ID: f.ID, GPUs: i % 3, CountedAt: f.End})
	}
	ledgers := make([]*verbs.Ledger, senders)
	for i := range ledgers {
		ledgers[i] = verbs.New(openInstance(t, address), ids.UUID{}, ledger.Config{})
	}
	atOnce := func(send func(l *verbs.Ledger, order []int) (int, error)) {
		var group sync.WaitGroup
		var counts [senders]int
		var errs [senders]error
		for i, l := range ledgers {
			order := rand.New(rand.NewPCG(1, uint64(i))).Perm(n)
			group.Go(func() { counts[i], errs[i] = send(l, order) })
		}
		group.Wait()
		sum := 0
		for i := range senders {
			require.NoError(t, errs[i])
			sum += counts[i]
		}
		require.Equal(t, n, sum)
	}
	atOnce(func(l *verbs.Ledger, order []int) (int, error) {
		return l.RecordForecasts(t.Context(), actor, inOrder(said, order))
	})
	atOnce(func(l *verbs.Ledger, order []int) (int, error) {
		return l.CloseForecasts(t.Context(), actor, inOrder(seen, order))
	})
	said[7].Said.Any, seen[7].GPUs = 0.75, 9
	_, err := ledgers[0].RecordForecasts(t.Context(), actor, said)
	require.ErrorIs(t, err, ledger.ErrDiffers)
	_, err = ledgers[0].CloseForecasts(t.Context(), actor, seen)
	require.ErrorIs(t, err, ledger.ErrDiffers)
}

func inOrder[T any](list []T, order []int) []T {
	out := slices.Clone(list)
	for i, at := range order {
		out[i] = list[at]
	}
	return out
}
