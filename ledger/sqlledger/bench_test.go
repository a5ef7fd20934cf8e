package sqlledger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// benchedStores opens the databases that are measured, by name.
func benchedStores() map[string]func(tb testing.TB) *sqlledger.Store {
	all := map[string]func(tb testing.TB) *sqlledger.Store{
		"sqlite": func(tb testing.TB) *sqlledger.Store { return openSQLite(tb, inFile(tb)) },
	}
	maps.Copy(all, benchedServices())
	return all
}

// measureMedian runs fn again and again and prints the median, which other work on
// the machine disturbs less than the mean. What before does is not measured.
func measureMedian(b *testing.B, name string, before, fn func()) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		before()
		b.StartTimer()
		begin := time.Now()
		fn()
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	fmt.Printf("figure: %s %.3f ms\n", name, float64(took[len(took)/2])/float64(time.Millisecond))
}

func mustWrite(tb testing.TB, store *sqlledger.Store, fn func(tx ledger.Tx) error) {
	tb.Helper()
	require.NoError(tb, store.InTx(tb.Context(), func(tx ledger.Tx) error { return fn(tx) }))
}

// saveTenantAndPool saves the rows that bookings refer to.
func saveTenantAndPool(tb testing.TB, store *sqlledger.Store) {
	tb.Helper()
	mustWrite(tb, store, func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{
			Organizations: []ledger.Organization{{ID: "org_1", Name: "a"}},
			Pools:         []ledger.Pool{{Pool: capacity.Pool{ID: "pol_1", Name: "a", PerNode: 8}}},
		})
	})
}

// newBookings returns a change with n new reservations and an event about each.
func newBookings(tb testing.TB, made *int, n int) ledger.Change {
	tb.Helper()
	var change ledger.Change
	for range n {
		*made++
		begin := start.Add(time.Duration(*made%720) * time.Hour)
		r, err := reservation.New(reservation.Reservation{
			ID: fmt.Sprintf("rsv_%012d", *made), OrganizationID: "org_1", PoolID: "pol_1",
			Class:  reservation.Guaranteed,
			Origin: reservation.FromAgent, MadeBy: "key_1", Workload: capacity.Online,
			Shape: capacity.Shape{Nodes: 1, PerNode: 4}, Slots: []int{*made % 1250},
			Window: calendar.Interval{Start: begin, End: begin.Add(time.Hour)},
		}, reservation.Booked, start)
		require.NoError(tb, err)
		change.Reservations = append(change.Reservations, r)
		change.Events = append(change.Events, ledger.Event{
			OrganizationID: "org_1", At: start, Type: "reservation.booked", Subject: r.ID, PoolID: "pol_1",
			Actor: "key_1",
			Via:   "api", Message: "4 GPUs in a from Mon 09:00:00Z to Mon 10:00:00Z",
		})
	}
	return change
}

// BenchmarkSave is one transaction that adds reservations and as many events.
func BenchmarkSave(b *testing.B) {
	for name, open := range benchedStores() {
		for _, rows := range []int{1, 100, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) {
				store := open(b)
				saveTenantAndPool(b, store)
				made := 0
				var change ledger.Change
				before := func() {
					change = newBookings(b, &made, rows)
					change.Last, change.Revisions = true, map[string]int64{"pol_1": int64(made)}
				}
				measureMedian(b, fmt.Sprintf("save_%s_%d", name, rows), before, func() {
					mustWrite(b, store, func(tx ledger.Tx) error {
						if _, err := tx.Lock(ledger.LockRequest{Organizations: []string{"org_1"},
							Pools: []string{"pol_1"}}); err != nil {
							return err
						}
						return tx.Save(change)
					})
				})
			})
		}
	}
}

// BenchmarkPoolState is what a verb pays when it does not know the pool yet.
func BenchmarkPoolState(b *testing.B) {
	for name, open := range benchedStores() {
		for _, rows := range []int{100, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) {
				store := open(b)
				saveTenantAndPool(b, store)
				made := 0
				mustWrite(b, store, func(tx ledger.Tx) error { return tx.Save(newBookings(b, &made, rows)) })
				measureMedian(b, fmt.Sprintf("pool_state_%s_%d", name, rows), func() {}, func() {
					mustWrite(b, store, func(tx ledger.Tx) error {
						state, err := tx.PoolState("pol_1")
						require.Len(b, state.Reservations, rows)
						return err
					})
				})
			})
		}
	}
}
