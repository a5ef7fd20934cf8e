package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

func TestTheLeastLikelyGivesWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := agentBeside(w.newPerson("bob"), "agent")
	window := w.windowAfter(time.Hour, 2*time.Hour)
	speculative := map[float64]string{}
	for _, p := range []float64{0.9, 0.3, 0.6, 0.5} {
		r, err := w.ledger.Reserve(t.Context(), bot,
			ledger.ReserveRequest{Pool: "lab", GPUs: 2, Window: window, Probability: p})
		require.NoError(t, err)
		require.Equal(t, reservation.Speculative, r.Class, "an agent cannot promise harder")
		speculative[p] = r.ID
	}
	ann := w.newPerson("ann")
	firm := w.mustReserve(ann, 4, window)
	require.Equal(t, reservation.Guaranteed, firm.Class)
	for p, id := range speculative {
		r := w.readReservation(id)
		require.Equal(t, p > 0.5, r.Placed(), "chance %v is %s", p, r.State())
		if p <= 0.5 {
			require.Equal(t, "displaced", r.Reason)
		}
	}
	_, err := w.ledger.Reserve(t.Context(), bot, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: window,
		Probability: 1})
	require.Equal(t, []admission.Code{admission.CapacityExhausted}, itemErrors(t, err),
		"what is speculative displaces nobody")
}

// Who has had more of the pool gives way first, however likely its reservation is.
func TestTheLargestShareGivesWayFirst(t *testing.T) {
	t.Parallel()
	for name, makeRoom := range map[string]func(w *world, by ledger.Actor, window calendar.Interval){
		"reservation": func(w *world, by ledger.Actor, window calendar.Interval) { w.mustReserve(by, 2, window) },
		"allocation": func(w *world, by ledger.Actor, window calendar.Interval) {
			w.clock.Set(window.Start.Add(-time.Minute))
			w.mustAllocate(by, 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ann, bob, cid := w.newPerson("ann"), w.newPerson("bob"), w.newPerson("cid")
			a := w.mustAllocate(ann, 8)
			w.pass(50 * time.Minute)
			_, err := w.ledger.Release(t.Context(), ann, a.ID)
			require.NoError(t, err)
			window := w.windowAfter(time.Hour, 2*time.Hour)
			booked := map[string][]reservation.Reservation{}
			for i, by := range []ledger.Actor{ann, bob, ann, bob} {
				chance := []float64{0.9, 0.2}[i%2]
				r, err := w.ledger.Reserve(t.Context(), agentBeside(by, "agent of "+by.KeyID), ledger.ReserveRequest{
					Pool: "lab", GPUs: 2, Window: window, Probability: chance,
				})
				require.NoError(t, err)
				booked[by.KeyID] = append(booked[by.KeyID], r)
			}
			makeRoom(w, cid, window)
			gone := w.readDecisions(ledger.DecisionFilter{Kind: ledger.DecisionDisplacement})
			require.Len(t, gone, 1)
			require.Equal(t, ann.OrganizationID, gone[0].OrganizationID, "ann had the whole pool just now")
			require.Empty(t, replayDecision(t, gone[0]))
			for _, r := range booked[bob.KeyID] {
				require.True(t, w.readReservation(r.ID).Placed())
			}
		})
	}
}

// A lease is extended on the GPUs that it has: of those who share its node the
// one who has had more gives way.
func TestTheLargestShareGivesWayToAnExtension(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob, cid := w.newPerson("ann"), w.newPerson("bob"), w.newPerson("cid")
	a := w.mustAllocate(ann, 8)
	w.pass(50 * time.Minute)
	_, err := w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	lease := w.mustAllocate(cid, 1)
	window := calendar.Interval{Start: lease.LeaseUntil, End: lease.LeaseUntil.Add(time.Hour)}
	for i := range 8 { // best fit puts one of each on every node
		by, chance := ann, 0.9
		if i%2 == 1 {
			by, chance = bob, 0.2
		}
		_, err = w.ledger.Reserve(t.Context(), agentBeside(by, "agent of "+by.KeyID), ledger.ReserveRequest{
			Pool: "lab", GPUs: 1, Window: window, Probability: chance,
		})
		require.NoError(t, err)
	}
	_, err = w.ledger.Extend(t.Context(), cid, lease.ID, time.Hour)
	require.NoError(t, err)
	gone := w.readDecisions(ledger.DecisionFilter{Kind: ledger.DecisionDisplacement})
	require.Len(t, gone, 1)
	require.Equal(t, ann.OrganizationID, gone[0].OrganizationID)
}

func TestCancelReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	first, second := agentBeside(ann, "first"), agentBeside(ann, "second")
	r := w.mustReserve(first, 2, w.windowAfter(time.Hour, 2*time.Hour))
	_, err := w.ledger.CancelReservation(t.Context(), second, r.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound, "an agent ends only its own")
	_, err = w.ledger.CancelReservation(t.Context(), w.newPerson("bob"), r.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound)

	cancelled, err := w.ledger.CancelReservation(t.Context(), ann, r.ID)
	require.NoError(t, err, "a person of the organization may")
	require.Equal(t, reservation.Cancelled, cancelled.State())
	require.Zero(t, cancelled.Cost, "it held nothing")
	require.Equal(t, w.readReservation(r.ID), cancelled)
	var state *ledger.StateError
	_, err = w.ledger.CancelReservation(t.Context(), ann, r.ID)
	require.ErrorAs(t, err, &state)
}

// fillPoolAndQueue fills the pool from the hour on, and has somebody wait for a place.
func (w *world) fillPoolAndQueue(ann ledger.Actor, window time.Duration) (held, waiting reservation.Reservation) {
	w.Helper()
	bob := w.newPerson("bob")
	held = w.mustReserve(ann, 8, w.windowAfter(time.Hour, time.Hour+window))
	ask := ledger.ReserveRequest{Pool: "lab", GPUs: 4, Window: held.Window}
	_, err := w.ledger.Reserve(w.Context(), bob, ask)
	require.Equal(w, []admission.Code{admission.CapacityExhausted}, itemErrors(w.T, err))
	ask.Queue = true
	waiting, err = w.ledger.Reserve(w.Context(), bob, ask)
	require.NoError(w, err)
	require.Equal(w, reservation.Waitlisted, waiting.State())
	require.Empty(w, waiting.Slots)
	w.pass(time.Minute)
	require.Equal(w, reservation.Waitlisted, w.readReservation(waiting.ID).State())
	return held, waiting
}

func TestAWaitlistedReservationGetsAPlaceThatBecomesFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held, waiting := w.fillPoolAndQueue(w.newPerson("ann"), time.Hour)
	_, err := w.ledger.CancelReservation(t.Context(), operator, held.ID)
	require.NoError(t, err)
	w.doDueWork()
	promoted := w.readReservation(waiting.ID)
	require.Equal(t, reservation.Booked, promoted.State())
	require.Len(t, promoted.Slots, 2)
	w.pass(time.Hour)
	require.Equal(t, reservation.Ready, w.readReservation(waiting.ID).State(), "it is warmed like any other")
}

func TestAPlaceIsGivenAfterTheWindowHasBegun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	held, waiting := w.fillPoolAndQueue(ann, 2*time.Hour)
	w.pass(time.Hour)
	a, err := w.ledger.Claim(t.Context(), ann, held.ID, 0, "")
	require.NoError(t, err)
	w.pass(30 * time.Minute)
	require.Equal(t, reservation.Waitlisted, w.readReservation(waiting.ID).State())
	_, err = w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	w.doDueWork()
	promoted := w.readReservation(waiting.ID)
	require.True(t, promoted.Placed(), "the rest of the window is free: %s", promoted.State())
	require.Equal(t, waiting.Window, promoted.Window)
}

// The worker that was to promote died after it had planned.
func TestAPromotionIsNotLostWithItsWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held, waiting := w.fillPoolAndQueue(w.newPerson("ann"), time.Hour)
	_, err := w.ledger.CancelReservation(t.Context(), operator, held.ID)
	require.NoError(t, err)
	due, err := w.ledger.Dispatch(t.Context(), 10, time.Minute)
	require.NoError(t, err)
	for _, task := range due {
		task, err = w.ledger.ClaimTask(t.Context(), task.ID, task.Attempt, time.Hour)
		require.NoError(t, err)
		found, err := w.ledger.Plan(t.Context(), ledger.Guard{TaskID: task.ID, Fence: task.Fence}, task.Subject)
		require.NoError(t, err)
		require.Equal(t, []string{waiting.ID}, found.Waitlisted)
	}
	require.Len(t, due, 1)
	require.Equal(t, reservation.Waitlisted, w.readReservation(waiting.ID).State())
	w.pass(2 * time.Minute)
	require.Equal(t, reservation.Booked, w.readReservation(waiting.ID).State())
}

func TestPromoteOfWhatIsOverDoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.mustReserve(w.newPerson("ann"), 1, w.windowAfter(time.Hour, 2*time.Hour))
	require.NoError(t, w.ledger.Promote(t.Context(), r.ID))
	require.NoError(t, w.ledger.Promote(t.Context(), "rsv_of_nobody"))
	require.Equal(t, r, w.readReservation(r.ID))
}
