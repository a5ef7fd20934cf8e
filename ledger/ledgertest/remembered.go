package ledgertest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// whatIsRememberedIsWhatThereIs looks after each change, so that the next look has
// something to remember.
func whatIsRememberedIsWhatThereIs(w *world) {
	n := saveGround(w)
	now := w.now()
	requireRemembered(w)
	first := bookedReservation(w, "rsv_1", "org_1", "pol_1", now)
	held := activeAllocation(w, "alc_1", "org_1", n, now.Add(-time.Hour), 0, 1)
	revise(w, 1, ledger.Change{Allocations: []allocation.Allocation{held}, Reservations: []reservation.Reservation{
		first, bookedReservation(w, "rsv_2", "org_2", "pol_1", now.Add(time.Hour))}})
	requireRemembered(w)

	first.Version, held.Version = 1, 1
	first = applyEvents(w, first, now.Add(-time.Minute), reservation.Warm, reservation.Cancel)
	held = releasedAllocation(w, held, now.Add(-time.Second))
	revise(w, 2, ledger.Change{Reservations: []reservation.Reservation{first},
		Allocations: []allocation.Allocation{held}})
	requireRemembered(w) // what lived is over

	revise(w, 3, ledger.Change{Reservations: []reservation.Reservation{
		applyEvents(w, bookedReservation(w, "rsv_3", "org_1", "pol_1", now), now, reservation.Warm, reservation.Expire)},
		Allocations: []allocation.Allocation{
			releasedAllocation(w, activeAllocation(w, "alc_2", "org_2", n, now.Add(-time.Minute), 2), now),
			activeAllocation(w, "alc_3", "org_1", n, now, 3)}})
	requireRemembered(w) // what nobody saw alive

	undone := errors.New("undone")
	before := readValue(w, func(r ledger.Reader) (ledger.Commitments, error) { return r.LiveCommitments("org_1") })
	require.ErrorIs(w, w.inTx(func(tx ledger.Tx) error {
		err := tx.Save(ledger.Change{Revisions: map[string]int64{"pol_1": 4}, Reservations: []reservation.Reservation{
			bookedReservation(w, "rsv_4", "org_1", "pol_1", now)}})
		require.NoError(w, err)
		after, err := tx.LiveCommitments("org_1")
		require.NoError(w, err)
		require.NotEqual(w, before.All.At(now), after.All.At(now), "a transaction sees its own")
		_, err = tx.LiveState("pol_1")
		return errors.Join(err, undone)
	}), undone)
	requireRemembered(w)

	pool := readValue(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("pol_1") })
	pool.Price = 3 * money.USD
	revise(w, 5, ledger.Change{Pools: []ledger.Pool{pool}})
	requireRemembered(w) // at another price

	reviseOften(w, 100, 1100)
	revise(w, 7, ledger.Change{Nodes: []node.Node{readyNode(w, "nod_2", "pol_1", 3, day)}})
	requireRemembered(w) // so much has changed that it is not listed any more
}

// spendingIsRememberedByTheMonth: what began in an earlier month counts while something
// lives that began then.
func spendingIsRememberedByTheMonth(w *world) {
	n := saveGround(w)
	now := w.now()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	ended := func(id string, begin time.Time) allocation.Allocation {
		return releasedAllocation(w, activeAllocation(w, id, "org_1", n, begin, 0), begin.Add(time.Hour))
	}
	revise(w, 1, ledger.Change{Allocations: []allocation.Allocation{ended("alc_1", month.AddDate(0, -1, 3)),
		ended("alc_2", month.Add(-time.Microsecond)), ended("alc_3", month)}})
	requireRemembered(w)
	old := bookedReservation(w, "rsv_1", "org_2", "pol_1", month.Add(-time.Second))
	revise(w, 2, ledger.Change{Reservations: []reservation.Reservation{old}})
	requireRemembered(w)
	revise(w, 3, ledger.Change{Allocations: []allocation.Allocation{ended("alc_4", month.AddDate(0, -1, 4))}})
	requireRemembered(w)
	old.Version = 1
	revise(w, 4, ledger.Change{Reservations: []reservation.Reservation{applyEvents(w, old, now, reservation.Cancel)}})
	requireRemembered(w)
}

// requireRemembered compares what those get who only look with what a transaction reads.
func requireRemembered(w *world) {
	w.Helper()
	now := w.now()
	for _, org := range []string{"org_1", "org_2", "org_404"} {
		got := readValue(w, func(r ledger.Reader) (ledger.Commitments, error) { return r.LiveCommitments(org) })
		want := readValue(w, func(r ledger.Reader) (ledger.Commitments, error) { return r.Commitments(org) })
		requireSameSums(w, &want.All, &got.All, now)
		requireSameSums(w, &want.Speculative, &got.Speculative, now)
		sameParts(w, want.ByKey, got.ByKey, now)
		sameParts(w, want.ByUser, got.ByUser, now)
	}
	for _, s := range []ledger.Scope{everything, {OrganizationID: "org_1"}, {}} {
		for _, f := range []ledger.BookingFilter{{}, {PoolID: "pol_1"}, {PoolID: "pol_2"}, {MadeBy: "key_2"},
			{State: []string{"booked", "active"}}, {UserID: "usr_1"}, {Name: "nightly"},
			{Since: now.Add(90 * time.Minute)}, {Until: now}} {
			f.Live = true
			for _, p := range []ledger.Page{{}, {Limit: 1}, {After: "rsv_2"}, {After: "alc_2"}, {After: "rsv_404"}} {
				p.Newest = true
				requireSameLists(w, s, f, p)
			}
		}
	}
}

func requireSameLists(w *world, s ledger.Scope, f ledger.BookingFilter, p ledger.Page) {
	w.Helper()
	var reservations, remembered []reservation.Reservation
	var allocations, held []allocation.Allocation
	require.NoError(w, w.inTx(func(tx ledger.Tx) (err error) {
		if reservations, err = tx.Reservations(s, f, p); err == nil {
			allocations, err = tx.Allocations(s, f, p)
		}
		return err
	}))
	w.readSnapshot(func(r ledger.Reader) (err error) {
		if remembered, err = r.Reservations(s, f, p); err == nil {
			held, err = r.Allocations(s, f, p)
		}
		return err
	})
	require.Equal(w, reservations, remembered, "%+v, %+v, %+v", s, f, p)
	require.Equal(w, allocations, held, "%+v, %+v, %+v", s, f, p)
}

// thePastIsListed: a list of a past period has what began in it, also when the clock
// that made an id was ahead of the database's.
func thePastIsListed(w *world) {
	saveGround(w)
	requested := []time.Duration{0, 23 * time.Hour, 47 * time.Hour, 49 * time.Hour, 200 * time.Hour}
	var c ledger.Change
	var held, booked []string
	for i, after := range requested {
		ahead := time.Duration(i%3) * 30 * time.Minute
		id := ids.First(ids.Allocation, day.Add(after+ahead))
		c.Allocations = append(c.Allocations, pendingAllocation(id, "org_1", "pol_1", day.Add(after)))
		r := bookedReservation(w, ids.First(ids.Reservation, day.Add(-after)), "org_1", "pol_1", day.Add(after-time.Minute))
		r.CreatedAt = day.Add(after)
		c.Reservations = append(c.Reservations, r)
		if after < 48*time.Hour {
			held, booked = append([]string{id}, held...), append([]string{r.ID}, booked...)
		}
	}
	w.mustSave(c)
	f, p := ledger.BookingFilter{Until: day.Add(48 * time.Hour)}, ledger.Page{Newest: true}
	w.readSnapshot(func(r ledger.Reader) error {
		allocations, err1 := r.Allocations(everything, f, p)
		require.Equal(w, held, namesOf(allocations, func(a allocation.Allocation) string { return a.ID }))
		reservations, err2 := r.Reservations(everything, f, p)
		require.Equal(w, booked, namesOf(reservations, func(r reservation.Reservation) string { return r.ID }))
		return errors.Join(err1, err2)
	})
}

// tasksTellThatTheyAreDue: who asks for due tasks, or waits for saved ones, misses none.
func tasksTellThatTheyAreDue(w *world) {
	due := func() bool {
		due, err := w.store.TasksDue(w.Context())
		require.NoError(w, err)
		return due
	}
	require.False(w, due())
	now := w.now()
	saved := w.store.TasksSaved()
	later := newTask("tsk_1", now.Add(time.Hour))
	later.Key = "plan:pol_1"
	w.mustSave(ledger.Change{Tasks: []ledger.Task{later}})
	require.False(w, due(), "it is due later")
	requireSaved(w, saved)
	saved = w.store.TasksSaved()
	require.NoError(w, w.inTx(func(tx ledger.Tx) error { return tx.Wake(later.Key, now) }))
	require.True(w, due())
	requireSaved(w, saved)
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		sent, err := tx.Dispatch(1, time.Hour)
		require.Len(w, sent, 1)
		return err
	}))
	require.False(w, due(), "it was sent")
}

// urgentChangesAreTold: whoever waits for what is urgent is told of it, also where another process committed it, and
// of nothing that is not.
func urgentChangesAreTold(w *world) {
	quiet, urgent := w.store.Urgent(), w.store.Urgent()
	event := []ledger.Event{{At: w.now(), Type: "test.urgent", Subject: "x"}}
	w.mustSave(ledger.Change{Events: event})
	select {
	case <-quiet:
		require.Fail(w, "it was not urgent")
	default:
	}
	require.Eventually(w, func() bool { // a store that has just begun to listen may have missed one
		w.mustSave(ledger.Change{Events: event, Urgent: true})
		select {
		case <-urgent:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	}, time.Minute, time.Millisecond)
}

// requireSaved requires that a channel was closed, where a store has one.
func requireSaved(w *world, saved <-chan struct{}) {
	w.Helper()
	if saved == nil {
		return
	}
	select {
	case <-saved:
	default:
		require.Fail(w, "nobody was told that a task was saved")
	}
}
