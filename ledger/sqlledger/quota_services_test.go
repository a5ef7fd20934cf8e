//go:build services

package sqlledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// TestQuotasHoldInEveryProcessAndPool has four processes book the same hour in two
// pools at the same time, and cancel again, for two organizations. Neither ever
// holds more than its quota, and in the end each holds all of it.
func TestQuotasHoldInEveryProcessAndPool(t *testing.T) {
	t.Parallel()
	const limit, clients, each = 5, 16, 12
	processes, people := openSite(t, limit)
	hour := comingHour()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for step := range each {
				l, who := processes[(i+step)%len(processes)], people[i%2]
				r, err := l.Reserve(t.Context(), who, ledger.ReserveRequest{
					Pool: []string{"north", "south"}[(i/2+step)%2], GPUs: 1, Window: hour, Name: fmt.Sprint(i, step)})
				if err == nil && step%3 != 2 {
					_, err = processes[(i+step+1)%len(processes)].CancelReservation(t.Context(), who, r.ID)
				}
				if _, refused := errors.AsType[*ledger.RefusedError](err); !refused && !errors.Is(err, ledger.ErrBusy) {
					checkNoError(t, err)
				}
				checkHeld(t, l, who, limit)
			}
		})
	}
	all.Wait()
	for _, who := range people {
		for {
			_, err := processes[1].Reserve(t.Context(), who, ledger.ReserveRequest{Pool: "south", GPUs: 1, Window: hour})
			if err != nil {
				_, refused := errors.AsType[*ledger.RefusedError](err)
				require.True(t, refused, err)
				break
			}
		}
		require.Equal(t, limit, heldGPUs(t, processes[2], who))
	}
}

// TestTotalsAreReadBesideABusyPool books in one pool while another process changes
// the other pool after each reading of it: what an organization holds there is read
// as it was at one moment.
func TestTotalsAreReadBesideABusyPool(t *testing.T) {
	t.Parallel()
	processes, people := openSite(t, 5)
	hour := comingHour()
	mustBook := func(l *verbs.Ledger, who ledger.Actor, pool string) {
		_, err := l.Reserve(t.Context(), who, ledger.ReserveRequest{Pool: pool, GPUs: 1, Window: hour})
		require.NoError(t, err)
	}
	for range 4 {
		mustBook(processes[1], people[0], "north")
	}
	disturbed := verbs.New(disturbedStore{processes[0].Booking.Store, func() {
		mustBook(processes[1], people[1], "north")
	}}, ids.UUID{}, ledger.Config{})
	mustBook(disturbed, people[0], "south")
	_, err := disturbed.Reserve(t.Context(), people[0], ledger.ReserveRequest{Pool: "south", GPUs: 1, Window: hour})
	_, refused := errors.AsType[*ledger.RefusedError](err)
	require.True(t, refused, "it holds 4 there and 1 here: %v", err)
}

// disturbedStore has somebody else commit a change after each reading of a pool in a
// transaction.
type disturbedStore struct {
	ledger.Store
	disturb func()
}

func (s disturbedStore) InTx(ctx context.Context, fn func(tx ledger.Tx) error) error {
	return s.Store.InTx(ctx, func(tx ledger.Tx) error { return fn(disturbedTx{tx, s.disturb}) })
}

type disturbedTx struct {
	ledger.Tx
	disturb func()
}

func (tx disturbedTx) PoolState(id string) (ledger.PoolState, error) {
	defer tx.disturb()
	return tx.Tx.PoolState(id)
}

func (tx disturbedTx) PoolStateSince(known ledger.Pool) (ledger.PoolState, bool, error) {
	defer tx.disturb()
	return tx.Tx.PoolStateSince(known)
}

func (tx disturbedTx) Snapshot(fn func(r ledger.Reader) error) error {
	return tx.Tx.Snapshot(func(r ledger.Reader) error {
		defer tx.disturb()
		return fn(r)
	})
}

// comingHour is an hour that begins soon.
func comingHour() calendar.Interval {
	begin := time.Now().Truncate(time.Hour).Add(3 * time.Hour)
	return calendar.Interval{Start: begin, End: begin.Add(time.Hour)}
}

// openSite returns four processes over one database with the pools north and south,
// and members of two organizations with a limit of GPUs.
func openSite(t *testing.T, limit int) (processes []*verbs.Ledger, people []ledger.Actor) {
	t.Helper()
	address := sharedDatabase(t)
	operator := ledger.SystemActor("test")
	for range 4 {
		processes = append(processes, verbs.New(openInstance(t, address), ids.UUID{}, ledger.Config{}))
	}
	for _, name := range []string{"north", "south"} {
		_, err := processes[0].CreatePool(t.Context(), operator, capacity.Pool{Name: name, Provisioner: "sim",
			Type: "gpu-8", Model: "h100", PerNode: 8, MemoryMiB: 81920, MaxNodes: 100, Simulated: true,
			Timers: capacity.Timers{MaxLease: time.Hour}}, learned.BootTimes{})
		require.NoError(t, err)
	}
	for _, name := range []string{"ann", "bob"} {
		org, err := processes[0].CreateOrganization(t.Context(), operator, name, quota.Limits{GPUs: limit})
		require.NoError(t, err)
		people = append(people, ledger.Actor{KeyID: "key of " + name, Kind: ledger.PersonKey, OrganizationID: org.ID,
			Role: ledger.Member})
	}
	return processes, people
}

func checkNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// checkHeld compares what an organization holds now with its quota.
func checkHeld(t *testing.T, l *verbs.Ledger, who ledger.Actor, limit int) {
	t.Helper()
	if held := heldGPUs(t, l, who); held > limit {
		t.Errorf("%s holds %d GPUs of %d", who.KeyID, held, limit)
	}
}

// heldGPUs adds up the live reservations of an organization, as they are stored.
func heldGPUs(t *testing.T, l *verbs.Ledger, who ledger.Actor) (gpus int) {
	t.Helper()
	err := l.Booking.Store.Read(t.Context(), func(r ledger.Reader) error {
		live, err := r.Reservations(who.Scope(), ledger.BookingFilter{Live: true}, ledger.Page{Limit: 500})
		for _, one := range live {
			gpus += one.Shape.GPUs()
		}
		return err
	})
	checkNoError(t, err)
	return gpus
}
