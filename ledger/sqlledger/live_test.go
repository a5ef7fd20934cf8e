package sqlledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/sqlledger"
)

// What one process remembers is brought up to date with what another one wrote.
func TestWhatAnotherProcessWroteIsSeen(t *testing.T) {
	t.Parallel()
	url := "sqlite://" + t.TempDir() + "/ledger.db"
	open := func() *sqlledger.Store {
		store, err := sqlledger.Open(t.Context(), sqlledger.Config{URL: url})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return store
	}
	looks, writes := open(), open()
	require.NoError(t, looks.Migrate(t.Context()))
	save := func(c ledger.Change) {
		require.NoError(t, writes.InTx(t.Context(), func(tx ledger.Tx) error { return tx.Save(c) }))
	}
	save(ledger.Change{
		Organizations: []ledger.Organization{{ID: "org_1", Name: "one"}},
		Pools:         []ledger.Pool{{Pool: capacity.Pool{ID: "pol_1", Name: "pool", MaxNodes: 8, PerNode: 8}}},
	})
	start := time.Now().UTC().Truncate(time.Hour)
	booked, err := reservation.New(reservation.Reservation{ID: "rsv_1", OrganizationID: "org_1", PoolID: "pol_1",
		Class: reservation.Guaranteed, Origin: reservation.FromPerson, MadeBy: "key_1", Workload: capacity.Online,
		Window: calendar.Interval{Start: start, End: start.Add(time.Hour)}, Shape: capacity.Shape{Nodes: 1, PerNode: 4},
		Slots: []int{0}}, reservation.Booked, start)
	require.NoError(t, err)
	for revision, events := range [][]reservation.Event{{}, {reservation.Warm}, {reservation.Cancel}} {
		for _, e := range events {
			booked, err = booked.Apply(e, "", start.Add(time.Duration(revision)*time.Minute))
			require.NoError(t, err)
		}
		save(ledger.Change{Reservations: []reservation.Reservation{booked},
			Revisions: map[string]int64{"pol_1": int64(revision)}})
		booked.Version++
		got, listed := lookAt(t, looks)
		require.Equal(t, booked.Live(), listed)
		want, _ := lookAt(t, writes)
		require.Equal(t, want.All.On(start), got.All.On(start))
		require.Equal(t, want.All.At(start)[quota.GPUs], got.All.At(start)[quota.GPUs])
	}
	got, _ := lookAt(t, looks)
	require.Equal(t, int64(4*60), got.All.On(start).GPUSeconds, "a minute of four GPUs")
}

// lookAt returns what the organization is committed to, and whether it has anything live.
func lookAt(t *testing.T, store *sqlledger.Store) (c ledger.Commitments, listed bool) {
	t.Helper()
	require.NoError(t, store.Read(context.Background(), func(r ledger.Reader) (err error) {
		if c, err = r.LiveCommitments("org_1"); err != nil {
			return err
		}
		found, err := r.Reservations(ledger.Scope{All: true}, ledger.BookingFilter{Live: true}, ledger.Page{Newest: true})
		listed = len(found) > 0
		return err
	}))
	return c, listed
}
