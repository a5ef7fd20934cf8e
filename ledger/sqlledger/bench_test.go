package sqlledger_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// BenchmarkPoolState is what a verb pays that does not know the pool yet: one pool with many live rows.
func BenchmarkPoolState(b *testing.B) {
	for _, rows := range []int{20, 200, 2000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			store, err := sqlledger.Open(b.Context(), sqlledger.Config{URL: "sqlite://:memory:", Clock: clock.NewManual(start), Unsafe: true})
			require.NoError(b, err)
			defer func() { require.NoError(b, store.Close()) }()
			require.NoError(b, store.Migrate(b.Context()))
			change := ledger.Change{
				Organizations: []ledger.Organization{{ID: "org_1", Name: "a"}},
				Pools:         []ledger.Pool{{Pool: gpu.Pool{ID: "pol_1", Name: "a", PerNode: 8}}},
			}
			for i := range rows {
				r, err := reservation.New(reservation.Reservation{
					ID: fmt.Sprintf("rsv_%06d", i), OrganizationID: "org_1", PoolID: "pol_1", Class: reservation.Guaranteed,
					Source: reservation.FromAgent, MadeBy: "key_1", Shape: gpu.Shape{Nodes: 1, PerNode: 4}, Slots: []int{i % 16},
					Window: calendar.Interval{Start: start, End: start.Add(time.Hour)},
				}, reservation.Booked, start)
				require.NoError(b, err)
				change.Reservations = append(change.Reservations, r)
			}
			write := func(fn func(tx ledger.Tx) error) {
				require.NoError(b, store.InTx(b.Context(), func(_ context.Context, tx ledger.Tx) error { return fn(tx) }))
			}
			write(func(tx ledger.Tx) error { return tx.Save(change) })
			for b.Loop() {
				write(func(tx ledger.Tx) error { _, err := tx.PoolState("pol_1"); return err })
			}
		})
	}
}
