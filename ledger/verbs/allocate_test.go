package verbs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// itemErrors returns the blockers that err names.
func itemErrors(t *testing.T, err error) (codes []admission.Code) {
	t.Helper()
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	for _, r := range refused.Decision.Reasons {
		codes = append(codes, r.Code)
	}
	return codes
}

func TestAllocatePrefersWhatIsUsableSoonest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.warmNodes(2)
	speculative := w.mustReserve(agentBeside(ann, "agent"), 2, w.windowAfter(0, time.Hour))
	w.doDueWork()
	require.Equal(t, reservation.Ready, w.readReservation(speculative.ID).State())

	first := w.mustAllocate(ann, 2)
	require.Equal(t, allocation.Active, first.State(), "zero wait")
	require.Equal(t, []string{speculative.ID}, first.Reservations, "its own reservation comes first")
	require.Equal(t, speculative.Slots, first.Slots)
	require.Equal(t, reservation.Claimed, w.readReservation(speculative.ID).State())

	second := w.mustAllocate(ann, 2)
	require.Equal(t, allocation.Active, second.State(), "the idle warm node is next")
	require.Empty(t, second.Reservations)

	third := w.mustAllocate(ann, 1)
	require.Equal(t, allocation.Pending, third.State(), "the rest is cold")
	w.doDueWork()
	w.pass(time.Minute)
	fourth := w.mustAllocate(ann, 1)
	require.Equal(t, third.Slots, fourth.Slots, "a node that comes is better than none")
	w.doDueWork()
	require.Len(t, w.readNodes(node.Ready, node.Booting), 3)
}

func TestAColdLeaseIsWholeAfterTheBoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.mustAllocate(w.newPerson("ann"), 2)
	require.Equal(t, allocation.Pending, a.State())
	w.pass(boot)
	a = w.readAllocation(a.ID)
	require.Equal(t, allocation.Active, a.State())
	require.Equal(t, boot, a.ActiveAt.Sub(a.RequestedAt))
	require.Equal(t, a.ActiveAt.Add(time.Hour), a.LeaseUntil, "the hour counts from when the GPUs were there")
	require.Equal(t, a.LeaseUntil, a.Window.End)
	require.Len(t, a.Devices, 2)
	w.pass(time.Hour)
	require.Equal(t, allocation.Expired, w.readAllocation(a.ID).State())
}

func TestAllocateByModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	a, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Model: "h100", GPUs: 1})
	require.NoError(t, err)
	require.Equal(t, w.pool.ID, a.PoolID)
	require.Equal(t, ledger.DefaultLease, a.Lease)
	for field, req := range map[string]ledger.AllocateRequest{
		"model": {Model: "b200", GPUs: 1}, "gpus": {Pool: "lab"},
		"lease_seconds": {Pool: "lab", GPUs: 1, Lease: time.Millisecond},
	} {
		_, err := w.ledger.Allocate(t.Context(), ann, req)
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
	_, err = w.ledger.Allocate(t.Context(), ledger.Actor{}, ledger.AllocateRequest{Pool: "lab", GPUs: 1})
	require.ErrorIs(t, err, ledger.ErrDenied)
}

func TestClaim(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		wait  time.Duration // from the booking to the claim; the window is [1h, 2h)
		state allocation.State
		lease time.Duration
	}{
		"when it may be first": {time.Hour - boot - guard, allocation.Pending, time.Hour + boot + guard},
		"when it is ready":     {time.Hour - time.Minute, allocation.Active, time.Hour + time.Minute},
		"in its window":        {time.Hour + 5*time.Minute, allocation.Active, 55 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ann := w.newPerson("ann")
			r := w.mustReserve(ann, 2, w.windowAfter(time.Hour, 2*time.Hour))
			w.pass(tc.wait)
			a, err := w.ledger.Claim(t.Context(), ann, r.ID, 0, "train")
			require.NoError(t, err)
			require.Equal(t, tc.state, a.State())
			require.Equal(t, []string{r.ID}, a.Reservations)
			require.Equal(t, r.Slots, a.Slots)
			require.Equal(t, tc.lease, a.Lease, "what is left of the window")
			require.Equal(t, reservation.Claimed, w.readReservation(r.ID).State())

			var state *ledger.StateError
			_, err = w.ledger.Claim(t.Context(), ann, r.ID, 0, "again")
			require.ErrorAs(t, err, &state, "a promise is kept once")
		})
	}
}

func TestWhatCannotBeClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	r := w.mustReserve(ann, 2, w.windowAfter(0, time.Hour))
	_, err := w.ledger.Claim(t.Context(), bob, r.ID, 0, "")
	require.ErrorIs(t, err, ledger.ErrNotFound, "another organization's does not exist")
	w.pass(2 * time.Hour)
	require.Equal(t, reservation.Expired, w.readReservation(r.ID).State())
	var state *ledger.StateError
	_, err = w.ledger.Claim(t.Context(), ann, r.ID, 0, "")
	require.ErrorAs(t, err, &state)
	require.Equal(t, string(reservation.Expired), state.State)
}

func TestRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	waiting := w.mustAllocate(ann, 2)
	cancelled, err := w.ledger.Release(t.Context(), ann, waiting.ID)
	require.NoError(t, err)
	require.Equal(t, allocation.Cancelled, cancelled.State())

	active := w.mustAllocate(ann, 2)
	w.pass(boot)
	released, err := w.ledger.Release(t.Context(), ann, active.ID)
	require.NoError(t, err)
	require.Equal(t, allocation.Released, released.State())
	require.Equal(t, w.readAllocation(active.ID), released, "what is answered is what is stored")
	for _, id := range []string{waiting.ID, active.ID} {
		var state *ledger.StateError
		_, err = w.ledger.Release(t.Context(), ann, id)
		require.ErrorAs(t, err, &state)
	}
	_, err = w.ledger.Release(t.Context(), w.newPerson("bob"), active.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound)
}

func TestExtend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	a := w.mustAllocate(ann, 8)
	_, err := w.ledger.Extend(t.Context(), ann, a.ID, time.Hour)
	var state *ledger.StateError
	require.ErrorAs(t, err, &state, "nothing to extend yet")
	w.pass(boot)
	a = w.readAllocation(a.ID)

	longer, err := w.ledger.Extend(t.Context(), ann, a.ID, 30*time.Minute)
	require.NoError(t, err)
	require.Equal(t, a.LeaseUntil.Add(30*time.Minute), longer.LeaseUntil)

	w.mustReserve(w.newPerson("bob"), 1, w.windowAfter(2*time.Hour, 3*time.Hour))
	_, err = w.ledger.Extend(t.Context(), ann, a.ID, time.Hour)
	require.Equal(t, []admission.Code{admission.CapacityExhausted}, itemErrors(t, err))
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, longer.LeaseUntil, refused.Decision.Offers[0].Window.Start, "an extension has no other start")
	require.Equal(t, longer.LeaseUntil, w.readAllocation(a.ID).LeaseUntil)

	_, err = w.ledger.Extend(t.Context(), ann, a.ID, 25*time.Minute)
	require.NoError(t, err, "up to the booking there is room")

	w.clock.Set(w.readAllocation(a.ID).LeaseUntil) // nobody has ended it yet
	_, err = w.ledger.Extend(t.Context(), ann, a.ID, time.Second)
	require.ErrorAs(t, err, &state, "what ran there is being ended")
	require.Equal(t, "over", state.State)
}

func TestExtendDisplacesASpeculativeReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	a := w.mustAllocate(ann, 8)
	w.pass(boot)
	speculative := w.mustReserve(agentBeside(w.newPerson("bob"), "agent"), 2,
		w.windowAfter(65*time.Minute, 3*time.Hour))
	_, err := w.ledger.Extend(t.Context(), ann, a.ID, time.Hour)
	require.NoError(t, err)
	require.Equal(t, reservation.Cancelled, w.readReservation(speculative.ID).State())
}

// A gang with fewer GPUs on its last node has so many on each as it had before: that there would
// be room for the short part on another of its nodes does not help.
func TestAGangIsExtendedWhereItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	a := w.mustAllocate(ann, 7)
	w.pass(boot)
	promised := w.mustReserve(w.newPerson("bob"), 1, w.windowAfter(65*time.Minute, 3*time.Hour))
	full := slices.Index(w.readAllocation(a.ID).Slots, promised.Slots[0])
	require.Equal(t, 2, a.Shape.On(full), "it was promised beside the two GPUs that end first")
	_, err := w.ledger.Extend(t.Context(), ann, a.ID, time.Hour)
	require.Equal(t, []admission.Code{admission.CapacityExhausted}, itemErrors(t, err))

	_, err = w.ledger.CancelReservation(t.Context(), ann, promised.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound, "it is bob's")
	_, err = w.ledger.Extend(t.Context(), ann, a.ID, time.Minute)
	require.NoError(t, err, "up to the booking there is room")
}

func TestQuotaHoldsAndIsGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newLimitedPerson("ann", quota.Limits{GPUs: 4})
	held := w.mustAllocate(ann, 2)
	promised := w.mustReserve(ann, 2, w.windowAfter(10*time.Minute, 20*time.Minute))
	_, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1})
	require.Equal(t, []admission.Code{admission.QuotaExceeded}, itemErrors(t, err))

	_, err = w.ledger.CancelReservation(t.Context(), ann, promised.ID)
	require.NoError(t, err)
	w.mustAllocate(ann, 2)
	_, err = w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1})
	require.Equal(t, []admission.Code{admission.QuotaExceeded}, itemErrors(t, err))
	_, err = w.ledger.Release(t.Context(), ann, held.ID)
	require.NoError(t, err)
	w.mustAllocate(ann, 1)
}

// Work that starts now takes over what its agent booked; a later start, which is
// reserved, stands beside it, and both count against the key's cap.
func TestALaterOfferHoldsBesideTheOwnReservations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ours, theirs := w.newPerson("ours"), w.newPerson("theirs")
	bot := agentBeside(ours, "forecaster")
	bot.Caps.MaxGPUs = 4
	_, err := w.ledger.SetDemand(w.Context(), bot, ledger.Demand{Pool: "lab", Windows: []ledger.DemandWindow{
		{Start: w.clock.Now().Add(time.Minute), End: w.clock.Now().Add(6 * time.Hour), GPUs: 1, Probability: 0.9}}})
	require.NoError(t, err)
	w.mustReserve(theirs, 6, w.windowAfter(time.Minute, 3*time.Hour))
	_, err = w.ledger.Allocate(w.Context(), bot, ledger.AllocateRequest{Pool: "lab", GPUs: 4, Lease: 4 * time.Hour})
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	for _, o := range refused.Decision.Offers {
		if o.Window.Start.After(w.clock.Now()) {
			_, err := w.ledger.Reserve(w.Context(), bot,
				ledger.ReserveRequest{Pool: "lab", GPUs: o.Shape.GPUs(), Window: o.Window})
			require.NoError(t, err, "%+v", o)
		}
	}
}

// A refused extension offers the longest that is accepted, and it is.
func TestARefusedExtensionOffersTheLongest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	a := w.mustAllocate(ann, 8)
	w.pass(boot)
	until := w.readAllocation(a.ID).LeaseUntil
	w.mustReserve(bob, 8, calendar.Interval{Start: until.Add(2 * time.Hour), End: until.Add(3 * time.Hour)})
	_, err := w.ledger.Extend(t.Context(), ann, a.ID, 3*time.Hour)
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Decision.Offers, 1)
	offer := refused.Decision.Offers[0]
	require.Equal(t, calendar.Interval{Start: until, End: until.Add(2 * time.Hour)}, offer.Window)
	longer, err := w.ledger.Extend(t.Context(), ann, a.ID, offer.Window.Length())
	require.NoError(t, err)
	require.Equal(t, longer.Cost-a.Cost, offer.Cost)
	_, err = w.ledger.Extend(t.Context(), ann, a.ID, time.Hour)
	require.ErrorAs(t, err, &refused)
	require.Empty(t, refused.Decision.Offers, "not by a second")
}
