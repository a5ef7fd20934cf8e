package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// refusedClaim claims, and returns the refusal.
func (w *world) refusedClaim(by ledger.Actor, id string, lease time.Duration) *ledger.RefusedError {
	w.Helper()
	_, err := w.ledger.Claim(w.Context(), by, id, lease, "")
	var refused *ledger.RefusedError
	require.ErrorAs(w, err, &refused)
	return refused
}

// A booking of one hour, claimed three days before, must not become a lease of
// three days. It stays, and each offer is good: at once, or from its time on.
func TestAnEarlyClaimIsRefusedWithOffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	r := w.mustReserve(ann, 2, w.windowAfter(72*time.Hour, 73*time.Hour))
	require.Equal(t, 2*money.USD, r.Cost)
	refused := w.refusedClaim(ann, r.ID, 0)
	require.Equal(t, admission.ClaimTooEarly, refused.Decision.Reasons[0].Code)
	require.Contains(t, refused.Error(), "would cost $146.00 instead of $2.00")
	require.Contains(t, refused.Error(), "2026-03-05T08:54:00Z", "with its date")
	require.NotEmpty(t, refused.DecisionID)
	require.Equal(t, reservation.Booked, w.readReservation(r.ID).State())

	from, now := r.Window.Start.Add(-boot-guard), w.clock.Now()
	require.Equal(t, []admission.Offer{
		{Pool: w.pool.ID, Shape: r.Shape, Window: calendar.Interval{Start: now, End: now.Add(time.Hour)},
			Cost: 2 * money.USD},
		{Pool: w.pool.ID, Shape: r.Shape, Window: calendar.Interval{Start: from, End: r.Window.End},
			Cost: 220 * money.USD / 100, Reservation: r.ID},
		{Pool: w.pool.ID, Shape: r.Shape, Window: r.Window, Cost: 2 * money.USD, Reservation: r.ID},
	}, refused.Decision.Offers)

	a, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 2, Lease: time.Hour})
	require.NoError(t, err)
	require.Equal(t, 2*money.USD, a.Cost)
	require.Equal(t, reservation.Booked, w.readReservation(r.ID).State(), "it is beside the reservation")
	w.pass(from.Sub(now) - time.Second)
	w.refusedClaim(ann, r.ID, 0)
	w.pass(time.Second)
	claimed, err := w.ledger.Claim(t.Context(), ann, r.ID, 0, "")
	require.NoError(t, err)
	require.Equal(t, 220*money.USD/100, claimed.Cost, "what was offered")
}

// Whoever claims for less than the window is told what that costs, and offered it: not
// the whole window under the same words.
func TestAnEarlyClaimIsOfferedTheLeaseItAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	r := w.mustReserve(ann, 2, w.windowAfter(72*time.Hour, 73*time.Hour))
	const asked = 15 * time.Minute
	refused := w.refusedClaim(ann, r.ID, asked)
	require.NotContains(t, refused.Error(), "would cost", "a lease to the window's end, which nobody asked for")
	require.Len(t, refused.Decision.Offers, 3)
	for _, o := range refused.Decision.Offers {
		require.Equal(t, asked, o.Window.Length())
		require.Equal(t, money.USD/2, o.Cost)
	}
	w.pass(r.Window.Start.Add(-boot - guard).Sub(w.clock.Now()))
	claimed, err := w.ledger.Claim(t.Context(), ann, r.ID, asked, "")
	require.NoError(t, err)
	require.Equal(t, money.USD/2, claimed.Cost, "what was offered")
}

// The offer to allocate at once is left out where there is no room for it.
func TestAnEarlyClaimInAFullPoolIsOfferedItsTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	r := w.mustReserve(ann, 2, w.windowAfter(2*time.Hour, 3*time.Hour))
	w.mustAllocate(bob, 8)
	for _, o := range w.refusedClaim(ann, r.ID, 0).Decision.Offers {
		require.Equal(t, r.ID, o.Reservation)
	}
}

// A lease is at most as long as what was booked: more is an extension, which is
// asked for.
func TestAClaimIsNotLongerThanWhatWasBooked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	r := w.mustReserve(ann, 2, w.windowAfter(time.Hour, 2*time.Hour))
	w.pass(65 * time.Minute)
	refused := w.refusedClaim(ann, r.ID, time.Hour+time.Second)
	require.Equal(t, admission.ClaimTooLong, refused.Decision.Reasons[0].Code)
	require.Len(t, refused.Decision.Offers, 1)
	require.Equal(t, 55*time.Minute, refused.Decision.Offers[0].Window.Length())
	a, err := w.ledger.Claim(t.Context(), ann, r.ID, time.Hour, "")
	require.NoError(t, err, "who comes late has the time that was booked")
	require.Equal(t, r.Cost, a.Cost)
	a, err = w.ledger.Extend(t.Context(), ann, a.ID, time.Hour)
	require.NoError(t, err)
	require.Equal(t, 2*r.Cost, a.Cost)
	w.pass(30 * time.Minute)
	a, err = w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	require.Equal(t, r.Cost/2, a.Cost, "what was really held")
}

// Whoever booked until the next booking begins claims what was booked, however cold its
// nodes are: the boot is taken from the lease, and not from the neighbour.
func TestAClaimThatMustBootKeepsWhatWasBooked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	w.mustReserve(bob, 8, w.windowAfter(30*time.Minute, 3*time.Hour))
	r := w.mustReserve(ann, 2, w.windowAfter(0, 30*time.Minute))
	refused := w.refusedClaim(ann, r.ID, time.Hour)
	require.Equal(t, admission.ClaimTooLong, refused.Decision.Reasons[0].Code)
	require.Len(t, refused.Decision.Offers, 1)

	a, err := w.ledger.Claim(t.Context(), ann, r.ID, refused.Decision.Offers[0].Window.Length(), "")
	require.NoError(t, err, "what was offered")
	require.Equal(t, r.Window.End, a.Window.End)
	w.pass(boot + time.Second)
	a = w.readAllocation(a.ID)
	require.Equal(t, allocation.Active, a.State())
	require.Equal(t, r.Window.End, a.LeaseUntil)
	require.Less(t, a.Cost, r.Cost, "what is held costs, and not what the boot took")
}

// A claim that would run past its window into the next booking is offered as far as there is room, and one that is
// early, while others still have its GPUs, from when they do not.
func TestAClaimForWhichThereIsNoRoomIsOfferedAsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	w.warmNodes(4)
	held := w.mustAllocate(bob, 8)
	begin := held.LeaseUntil
	r := w.mustReserve(ann, 8, calendar.Interval{Start: begin, End: begin.Add(5 * time.Minute)})
	w.mustReserve(bob, 8, calendar.Interval{Start: r.Window.End, End: r.Window.End.Add(time.Hour)})
	w.pass(begin.Sub(w.clock.Now()) - time.Minute)
	early := w.refusedClaim(ann, r.ID, 0)
	require.Equal(t, admission.CapacityExhausted, early.Decision.Reasons[0].Code)
	require.Len(t, early.Decision.Offers, 1)
	require.Equal(t, r.ID, early.Decision.Offers[0].Reservation)
	require.Equal(t, begin, early.Decision.Offers[0].Window.Start)

	w.pass(90 * time.Second)
	late := w.refusedClaim(ann, r.ID, 5*time.Minute)
	require.Len(t, late.Decision.Offers, 1)
	offer := late.Decision.Offers[0]
	require.Equal(t, r.ID, offer.Reservation)
	require.Equal(t, r.Window.End, offer.Window.End)
	w.pass(r.Window.End.Sub(w.clock.Now()) - 11*time.Second)
	a, err := w.ledger.Claim(t.Context(), ann, r.ID, 0, "")
	require.NoError(t, err, "there is no minute left, and what is left is hers")
	require.Equal(t, r.Window.End, a.LeaseUntil)
}
