package plan

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
)

func planReservations(c *computation) {
	for _, r := range c.near {
		switch r.State() {
		case reservation.Waitlisted:
			endIfOver(c, r, ExpireReservation)
		case reservation.Booked:
			planBooked(c, r)
		case reservation.Warming:
			planWarming(c, r)
		case reservation.Ready:
			planReady(c, r)
		}
	}
}

// reservationFacts are those that are the same for every decision about a reservation.
func reservationFacts(c *computation, r *reservation.Reservation) Facts {
	return Facts{
		State: string(r.State()), Source: string(r.Origin), Start: r.Window.Start, End: r.Window.End,
		BookedAt: promisedAt(r),
		Lead:     c.boot95, Guard: c.policy.Guard, Boot50: c.boot50, Paused: c.isPaused(r), Degraded: r.Degraded,
		Condition: r.Reason, Divided: r.PartOf != "",
	}
}

// promisedAt is when the reservation was given its place, which is what its promise
// counts from: one that waited was promised nothing while it did.
func promisedAt(r *reservation.Reservation) time.Time { return calendar.Later(r.CreatedAt, r.BookedAt) }

// isPaused reports whether the reservation is speculative and nothing may be done for it.
func (c *computation) isPaused(r *reservation.Reservation) bool {
	return r.Class == reservation.Speculative && isPausedFor(c, r.OrganizationID)
}

// isPausedFor reports whether nothing speculative is made ready for an organization.
func isPausedFor(c *computation, organization string) bool {
	return c.Pool.Paused || c.organizationPaused(organization) || c.organizationPaused("")
}

// pausedUntil is when a paused reservation is warmed again; zero where nobody said.
func pausedUntil(c *computation, r *reservation.Reservation) time.Time {
	var until time.Time
	for _, of := range []string{r.OrganizationID, ""} {
		if c.Pool.Paused || c.organizationPaused(of) && c.Paused[of].IsZero() {
			return time.Time{}
		}
		if c.organizationPaused(of) {
			until = calendar.Later(until, c.Paused[of])
		}
	}
	return until
}

func (c *computation) organizationPaused(organization string) bool {
	until, ok := c.Paused[organization]
	return ok && (until.IsZero() || !c.hasCome(until))
}

// endIfOver takes the action about a reservation whose window is over, and reports
// whether it is.
func endIfOver(c *computation, r *reservation.Reservation, kind Kind) bool {
	if !c.hasCome(r.Window.End) {
		return false
	}
	c.keepNodes(r.Slots)
	c.judge(Action{Kind: kind, Subject: r.ID, Facts: reservationFacts(c, r)})
	return true
}

func planBooked(c *computation, r *reservation.Reservation) {
	switch {
	case c.isPaused(r):
		endIfOver(c, r, ExpireReservation)
		return
	case endIfOver(c, r, FailReservation), c.shifted[r.ID]:
		return
	}
	if c.losesSlot(r.Slots) {
		replaceLostSlots(c, r)
		return
	}
	if r.Degraded {
		restorePlace(c, r)
	}
	if c.hasCome(r.Window.Start.Add(-c.lead)) {
		c.judge(Action{Kind: WarmReservation, Subject: r.ID, Facts: reservationFacts(c, r)})
		provideNodes(c, r)
	}
}

// replaceLostSlots finds another place for a promise whose slot the pool no longer has,
// and flags it where there is none. It is never dropped: the pool may grow again.
func replaceLostSlots(c *computation, r *reservation.Reservation) {
	b := r.Booking()
	slots := c.moveToBetter(MoveReservation, b, r.Shape)
	if c.losesSlot(slots) {
		slots = makeRoomFor(c, r)
	}
	if c.losesSlot(slots) {
		f := reservationFacts(c, r)
		f.Outside, f.Readiness, f.From = true, stuck.String(), slots
		c.judge(Action{Kind: DegradeReservation, Subject: r.ID, Facts: f})
	}
}

// makeRoomFor has others make room for a reservation, and returns its slots.
func makeRoomFor(c *computation, r *reservation.Reservation) []int {
	b := r.Booking()
	slots := c.makeRoom(b, r.Shape)
	if c.totalCost(slots) < c.totalCost(b.Slots) {
		c.moveBooking(Action{Kind: MoveReservation, Subject: r.ID, Slots: slots,
			Facts: Facts{Outside: c.losesSlot(b.Slots)}},
			b)
	}
	return slots
}

func restorePlace(c *computation, r *reservation.Reservation) {
	f := reservationFacts(c, r)
	f.Outside = c.losesSlot(r.Slots)
	c.judge(Action{Kind: RestoreReservation, Subject: r.ID, Facts: f})
}

func planWarming(c *computation, r *reservation.Reservation) {
	if c.isPaused(r) {
		endIfOver(c, r, ExpireReservation)
		return
	}
	if endIfOver(c, r, FailReservation) {
		return
	}
	f := reservationFacts(c, r)
	f.Readiness = c.readiness(r.Slots).String()
	if c.judge(Action{Kind: ReadyReservation, Subject: r.ID, Facts: f}) {
		c.keepNodes(r.Slots)
		return
	}
	provideNodes(c, r)
}

// provideNodes moves a reservation to slots that serve it sooner, asks for the nodes
// it lacks, and flags it when it will be late.
func provideNodes(c *computation, r *reservation.Reservation) {
	slots := pickSlots(c, r)
	c.requireNodes(slots, ReasonPrewarm)
	f := reservationFacts(c, r)
	f.Readiness, f.ETA, f.From, f.BlockedUntil = c.readiness(slots).String(), c.expectedReady(slots), slots,
		c.Supply.BlockedUntil
	if f.Outside = c.losesSlot(slots); !f.Outside && r.Degraded && r.State() != reservation.Booked {
		restorePlace(c, r)
	}
	if r.Degraded || !f.Outside && (f.BookedAt.After(f.Start.Add(-f.Lead)) || c.readiness(slots) == ready) {
		return
	}
	if c.judge(Action{Kind: DegradeReservation, Subject: r.ID, Facts: f}) {
		return
	}
	// A boot that has not begun by the first of these, or not ended by the
	// second, is late.
	c.wakeAt(r.Window.Start.Add(-c.boot50))
	c.wakeAt(r.Window.Start)
}

// pickSlots picks the slots that a reservation is warmed on: better ones if there
// are any; others that can be cleared where its own cannot serve it in time, or
// where a ready node would be idle beside a boot.
func pickSlots(c *computation, r *reservation.Reservation) []int {
	slots := c.moveToBetter(MoveReservation, r.Booking(), r.Shape)
	switch {
	case len(slots) == 0 || c.totalCost(slots) < c.totalCost(r.Slots) || c.readiness(slots) >= coming:
		return slots
	case c.readiness(slots) == stuck, c.readyCount > 0, !c.expectedReady(slots).Before(r.Window.Start):
		return makeRoomFor(c, r)
	default:
		return slots
	}
}

// mayBeNoShow reports whether a reservation ends some time after its start if nobody has claimed anything of it.
func mayBeNoShow(r *reservation.Reservation) bool {
	return r.Origin != reservation.FromAgent && r.PartOf == ""
}

func planReady(c *computation, r *reservation.Reservation) {
	hold := calendar.Later(r.Window.Start, r.ReadyAt).Add(c.Pool.Timers.WarmHold)
	f := reservationFacts(c, r)
	f.Due, f.Readiness, f.Outside = hold, c.readiness(r.Slots).String(), c.losesSlot(r.Slots)
	f.Taken = slices.ContainsFunc(r.Slots, func(slot int) bool { return isTaken(c, slot) })
	if mayBeNoShow(r) && f.Readiness == ready.String() {
		c.wakeAt(hold)
	}
	c.wakeAt(r.Window.End)
	switch {
	case c.judge(Action{Kind: ExpireReservation, Subject: r.ID, Facts: f}):
		c.keepNodes(r.Slots)
	case c.judge(Action{Kind: UnreadyReservation, Subject: r.ID, Facts: f}):
		if f.Paused {
			c.keepNodes(r.Slots)
			return
		}
		provideNodes(c, r)
	default:
		c.keepNodes(r.Slots)
	}
}
