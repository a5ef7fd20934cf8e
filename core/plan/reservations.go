package plan

import (
	"time"

	"github.com/forewarm/forewarm/core/reservation"
)

func (c *computation) reservations() {
	for _, r := range c.near {
		switch r.State() {
		case reservation.Waitlisted:
			c.ended(r, ExpireReserv)
		case reservation.Booked:
			c.booked(r)
		case reservation.Warming:
			c.warming(r)
		case reservation.Ready:
			c.ready(r)
		}
	}
}

// facts are those that are the same for every decision about a reservation.
func (c *computation) facts(r *reservation.Reservation) Facts {
	return Facts{
		State: string(r.State()), Source: string(r.Origin), Start: r.Window.Start, End: r.Window.End,
		BookedAt: booked(r),
		Lead:     c.boot95, Guard: c.policy.Guard, Boot50: c.boot50, Paused: c.paused(r), Degraded: r.Degraded,
		Condition: r.Reason,
	}
}

// booked is when the reservation was given its place, which is what its promise
// counts from: one that waited was promised nothing while it did.
func booked(r *reservation.Reservation) time.Time { return later(r.CreatedAt, r.BookedAt) }

// paused reports whether the reservation is a guess that nothing may be done for.
func (c *computation) paused(r *reservation.Reservation) bool {
	if r.Class != reservation.Speculative {
		return false
	}
	return c.Pool.Paused || c.pausedFor(r.OrganizationID) || c.pausedFor("")
}

// pausedUntil is when a paused reservation is warmed again; zero where nobody said.
func (c *computation) pausedUntil(r *reservation.Reservation) time.Time {
	var until time.Time
	for _, of := range []string{r.OrganizationID, ""} {
		if c.Pool.Paused || c.pausedFor(of) && c.Paused[of].IsZero() {
			return time.Time{}
		}
		if c.pausedFor(of) {
			until = later(until, c.Paused[of])
		}
	}
	return until
}

func (c *computation) pausedFor(organization string) bool {
	until, ok := c.Paused[organization]
	return ok && (until.IsZero() || !c.reached(until))
}

// ended takes the action about a reservation whose window is over, and reports
// whether it is.
func (c *computation) ended(r *reservation.Reservation, kind Kind) bool {
	if !c.reached(r.Window.End) {
		return false
	}
	c.keep(r.Slots)
	c.judge(Action{Kind: kind, Subject: r.ID, Facts: c.facts(r)})
	return true
}

func (c *computation) booked(r *reservation.Reservation) {
	switch {
	case c.paused(r):
		c.ended(r, ExpireReserv)
		return
	case c.ended(r, FailReservation), c.shifted[r.ID]:
		return
	}
	if c.homeless(r.Slots) {
		c.rehouse(r)
		return
	}
	if r.Degraded {
		c.heal(r)
	}
	if c.reached(r.Window.Start.Add(-c.lead)) {
		c.judge(Action{Kind: WarmReservation, Subject: r.ID, Facts: c.facts(r)})
		c.provide(r)
	}
}

// rehouse finds another place for a promise whose slot the pool no longer has,
// and flags it where there is none. It is never dropped: the pool may grow again.
func (c *computation) rehouse(r *reservation.Reservation) {
	b := r.Booking()
	slots := c.relocate(MoveReservation, b, r.Shape)
	if c.homeless(slots) {
		slots = c.squeeze(r)
	}
	if c.homeless(slots) {
		f := c.facts(r)
		f.Outside, f.Standing, f.From = true, stuck.String(), slots
		c.judge(Action{Kind: DegradeReserv, Subject: r.ID, Facts: f})
	}
}

// squeeze has others make room for a reservation, and returns its slots.
func (c *computation) squeeze(r *reservation.Reservation) []int {
	b := r.Booking()
	slots := c.makeRoom(b, r.Shape)
	if c.cost(slots) < c.cost(b.Slots) {
		c.move(Action{Kind: MoveReservation, Subject: r.ID, Slots: slots, Facts: Facts{Outside: c.homeless(b.Slots)}},
			b)
	}
	return slots
}

func (c *computation) heal(r *reservation.Reservation) {
	f := c.facts(r)
	f.Outside = c.homeless(r.Slots)
	c.judge(Action{Kind: RestoreReserv, Subject: r.ID, Facts: f})
}

func (c *computation) warming(r *reservation.Reservation) {
	if c.paused(r) {
		c.ended(r, ExpireReserv)
		return
	}
	if c.ended(r, FailReservation) {
		return
	}
	f := c.facts(r)
	f.Standing = c.standing(r.Slots).String()
	if c.judge(Action{Kind: ReadyReservation, Subject: r.ID, Facts: f}) {
		c.keep(r.Slots)
		return
	}
	c.provide(r)
}

// provide moves a reservation to slots that serve it sooner, asks for the nodes
// it lacks, and flags it when it will be late.
func (c *computation) provide(r *reservation.Reservation) {
	slots := c.supply(r)
	c.want(slots, ReasonPrewarm)
	f := c.facts(r)
	f.Standing, f.ETA, f.From, f.BlockedUntil = c.standing(slots).String(), c.eta(slots), slots, c.Supply.BlockedUntil
	if f.Outside = c.homeless(slots); !f.Outside && r.Degraded && r.State() != reservation.Booked {
		c.heal(r)
	}
	if r.Degraded || !f.Outside && (f.BookedAt.After(f.Start.Add(-f.Lead)) || c.standing(slots) == ready) {
		return
	}
	if c.judge(Action{Kind: DegradeReserv, Subject: r.ID, Facts: f}) {
		return
	}
	// A boot that has not begun by the first of these, or not ended by the
	// second, is late.
	c.at(r.Window.Start.Add(-c.boot50))
	c.at(r.Window.Start)
}

// supply picks the slots that a reservation is warmed on: better ones if there
// are any; others that can be cleared where its own cannot serve it in time, or
// where a ready node would be idle beside a boot.
func (c *computation) supply(r *reservation.Reservation) []int {
	slots := c.relocate(MoveReservation, r.Booking(), r.Shape)
	switch {
	case len(slots) == 0 || c.cost(slots) < c.cost(r.Slots) || c.standing(slots) >= coming:
		return slots
	case c.standing(slots) == stuck, c.readied > 0, !c.eta(slots).Before(r.Window.Start):
		return c.squeeze(r)
	default:
		return slots
	}
}

func (c *computation) ready(r *reservation.Reservation) {
	hold := later(r.Window.Start, r.ReadyAt).Add(c.Pool.Timers.WarmHold)
	f := c.facts(r)
	f.Due, f.Standing, f.Outside = hold, c.standing(r.Slots).String(), c.homeless(r.Slots)
	if r.Origin != reservation.FromAgent && f.Standing == ready.String() {
		c.at(hold)
	}
	c.at(r.Window.End)
	switch {
	case c.judge(Action{Kind: ExpireReserv, Subject: r.ID, Facts: f}):
		c.keep(r.Slots)
	case c.judge(Action{Kind: UnreadyReservation, Subject: r.ID, Facts: f}):
		if f.Paused {
			c.keep(r.Slots)
			return
		}
		c.provide(r)
	default:
		c.keep(r.Slots)
	}
}
