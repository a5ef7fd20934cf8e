package ledgertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

var errGivenUp = errors.New("given up")

// requireEmpty fails the test unless nothing of everyKind is stored.
func requireEmpty(w *world) {
	w.Helper()
	w.readSnapshot(func(r ledger.Reader) error {
		orgs, err1 := r.Organizations(everything, ledger.Page{})
		pools, err2 := r.Pools(ledger.Page{})
		nodes, err3 := r.Nodes(ledger.NodeFilter{}, ledger.Page{})
		reservations, err4 := r.Reservations(everything, ledger.BookingFilter{}, ledger.Page{})
		allocations, err5 := r.Allocations(everything, ledger.BookingFilter{}, ledger.Page{})
		tasks, err6 := r.Tasks()
		_, stored, err7 := r.Replay("org_1", "POST /v1/reservations", "a")
		expectations, err8 := r.Forecasts(everything, ledger.ForecastFilter{}, 0)
		require.Empty(w, orgs)
		require.Empty(w, pools)
		require.Empty(w, nodes)
		require.Empty(w, reservations)
		require.Empty(w, allocations)
		require.Empty(w, tasks)
		require.False(w, stored)
		require.Empty(w, expectations)
		return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8)
	})
}

// everyKind is a change with a row of every kind.
func everyKind(w *world) ledger.Change {
	w.Helper()
	n := readyNode(w, "nod_1", "pol_1", 0, day)
	return ledger.Change{
		Organizations: []ledger.Organization{newOrganization("org_1")},
		Users:         []ledger.User{newUser("usr_1", "org_1")},
		Keys:          []ledger.Key{newKey("key_1", "org_1")},
		Pools:         []ledger.Pool{newPool("pol_1")},
		Nodes:         []node.Node{n},
		Reservations:  []reservation.Reservation{bookedReservation(w, "rsv_1", "org_1", "pol_1", day)},
		Allocations:   []allocation.Allocation{activeAllocation(w, "alc_1", "org_1", n, day, 0)},
		Schedules:     []ledger.Schedule{newSchedule("sch_1", "org_1", "pol_1")},
		Jobs:          []job.Job{newJob(w, "job_1", "org_1", "pol_1", day)},
		Events:        []ledger.Event{decisionEvent("org_1", "nod_1", ledger.DecisionPrewarm)},
		Tasks:         []ledger.Task{newTask("tsk_1", day)},
		Replays:       []ledger.Replay{newReplay("org_1", "a")},
		Plans:         []ledger.Preview{newPreview("pln_1", "org_1")},
		Forecasts:     []ledger.Forecast{cameOut(openForecast("fct_1", "org_1"), 2)},
	}
}

func aFailedTransactionLeavesNothing(w *world) {
	require.ErrorIs(w, w.inTx(func(tx ledger.Tx) error {
		if err := tx.Save(everyKind(w)); err != nil {
			return err
		}
		return errGivenUp
	}), errGivenUp)
	requireEmpty(w)
	require.Panics(w, func() {
		_ = w.inTx(func(tx ledger.Tx) error {
			require.NoError(w, tx.Save(everyKind(w)))
			panic("in the middle")
		})
	})
	requireEmpty(w)
	w.mustSave(everyKind(w)) // nothing is left that could be in the way
}

// aSwallowedFailureLeavesNothing: on PostgreSQL a failed statement ends the
// transaction, so a caller that goes on must fail on every database.
func aSwallowedFailureLeavesNothing(w *world) {
	require.ErrorIs(w, w.inTx(func(tx ledger.Tx) error {
		if err := tx.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_1")}}); err != nil {
			return err
		}
		require.ErrorIs(w, tx.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_1")}}), ledger.ErrTaken)
		return nil
	}), ledger.ErrTaken)
	requireEmpty(w)
}

func aNestedTransactionIsOne(w *world) {
	nested := func(outcome error) error {
		return w.store.InTx(w.Context(), func(outer ledger.Tx) error {
			change := ledger.Change{Organizations: []ledger.Organization{newOrganization("org_1")}}
			if err := outer.Save(change); err != nil {
				return err
			}
			err := outer.Nested(func(inner ledger.Tx) error {
				if _, err := inner.Organization(everything, "org_1"); err != nil {
					return err // what the outer one wrote is seen
				}
				return inner.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_1")}})
			})
			if err != nil {
				return err
			}
			_, err = outer.Pool("pol_1")
			return errors.Join(err, outcome)
		})
	}
	require.ErrorIs(w, nested(errGivenUp), errGivenUp)
	requireEmpty(w)
	require.NoError(w, nested(nil))
	require.Len(w, readValue(w, func(r ledger.Reader) ([]ledger.Pool, error) { return r.Pools(ledger.Page{}) }), 1)
}

func aLostHalfLosesTheWhole(w *world) {
	half := func(write bool) error {
		return w.store.InTx(w.Context(), func(outer ledger.Tx) error {
			_ = outer.Nested(func(inner ledger.Tx) error {
				if write {
					require.NoError(w, inner.Save(ledger.Change{Pools: []ledger.Pool{newPool("pol_1")}}))
				}
				return errGivenUp
			})
			return outer.Save(ledger.Change{Organizations: []ledger.Organization{newOrganization("org_1")}})
		})
	}
	require.ErrorIs(w, half(true), errGivenUp)
	requireEmpty(w)
	require.NoError(w, half(false), "a refusal that wrote nothing may be overcome")
}

func timeStandsStill(w *world) {
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		now := tx.Now()
		require.Equal(w, now, now.UTC().Truncate(time.Microsecond))
		require.True(w, now.After(day))
		for range 20 {
			require.NoError(w, tx.Wake("nothing", now))
			require.Equal(w, now, tx.Now())
		}
		return nil
	}))
}

func aLockKeepsUpdates(w *world) {
	saveGround(w)
	const writers = 64
	runConcurrently(w, writers, func(tx ledger.Tx) error {
		locked, err := tx.Lock(ledger.LockRequest{Pools: []string{"pol_1"}})
		if err != nil {
			return err
		}
		locked.Pools[0].Failures++
		return tx.Save(ledger.Change{Pools: locked.Pools})
	})
	p := readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") })
	require.Equal(w, newPool("pol_1").Failures+writers, p.Failures)
	runConcurrently(w, writers, func(tx ledger.Tx) error {
		locked, err := tx.Lock(ledger.LockRequest{Organizations: []string{"org_1"}})
		if err != nil {
			return err
		}
		locked.Organizations[0].Limits.GPUs++
		return tx.Save(ledger.Change{Organizations: locked.Organizations})
	})
	o := readValue(w, func(r ledger.Reader) (ledger.Organization, error) { return r.Organization(everything, "org_1") })
	require.Equal(w, newOrganization("org_1").Limits.GPUs+writers, o.Limits.GPUs)
}

// runConcurrently runs a transaction n times at once; none may fail.
func runConcurrently(w *world, n int, fn func(tx ledger.Tx) error) {
	w.Helper()
	failures := make(chan error, n)
	var group sync.WaitGroup
	for range n {
		group.Go(func() { failures <- w.inTx(fn) })
	}
	group.Wait()
	close(failures)
	for err := range failures {
		require.NoError(w, err)
	}
}

func aClosedContextStops(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	err := w.store.InTx(ctx, func(tx ledger.Tx) error {
		require.NoError(w, tx.Save(everyKind(w)))
		cancel()
		return nil
	})
	require.ErrorIs(w, err, context.Canceled)
	requireEmpty(w)
}
