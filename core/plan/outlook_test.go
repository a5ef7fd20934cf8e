package plan_test

import (
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// claim is something that an outlook said of a subject. It holds until somebody
// asks for something or something fails.
type claim struct {
	code    string
	subject string
	at      time.Time
}

// outlook is what is said about the pool as it is.
func (h *history) outlook() *plan.Outlook { return plan.Foresee(h.liveSnapshot(), h.policy, h.now) }

// subjectIDs are the bookings that are not over.
func (h *history) subjectIDs() []string {
	var ids []string
	s := h.liveSnapshot()
	for _, a := range s.Allocations {
		ids = append(ids, a.ID)
	}
	for _, r := range s.Reservations {
		ids = append(ids, r.ID)
	}
	return ids
}

// announcedSlots are the slots for which a node is said to be asked for now.
func (h *history) announcedSlots() (slots []int) {
	o := h.outlook()
	for _, id := range h.subjectIDs() {
		for _, x := range o.Obstacles(id) {
			if x.Code == plan.LacksNode {
				slots = append(slots, x.Slot)
			}
		}
	}
	return slots
}

func saysNext(o *plan.Outlook, id, code string) bool {
	return slices.ContainsFunc(o.Obstacles(id), func(x plan.Obstacle) bool { return x.Code == code })
}

// checkRequested fails when a node that was said to be asked for was not, or is still said
// to be after the planner has done all there was to do.
func (h *history) checkRequested(soon []int) {
	o := h.outlook()
	for _, id := range h.subjectIDs() {
		require.False(h.r, saysNext(o, id, plan.LacksNode), "%s: a node is about to be asked for, and is not: %s", id,
			h)
	}
	for _, slot := range soon {
		made := func(n node.Node) bool { return n.Slot == slot && n.RequestedAt.Equal(h.now) }
		require.True(h.r, slices.ContainsFunc(h.Nodes, made), "a node was to be asked for on %d: %s", slot, h)
	}
}

// checkObstacles fails when a promise is flagged for a lost place and nothing is said of
// it, or when it is said of one that is not flagged: pools grow and shrink.
func (h *history) checkObstacles() {
	o := h.outlook()
	for _, r := range h.liveSnapshot().Reservations {
		waits := r.State() == reservation.Booked || r.State() == reservation.Warming
		if !waits || r.Class == reservation.Speculative || !r.Window.End.After(h.now) {
			continue
		}
		homeless := saysNext(o, r.ID, plan.LacksSlot)
		if homeless {
			require.True(h.r, r.Degraded, "%s has no place, and is not flagged: %s", r.ID, h)
			_, waits := o.Waiting(r.ID)
			require.False(h.r, waits, "%s waits for what nobody knows", r.ID)
		} else {
			require.False(h.r, r.Degraded && r.Reason == plan.ReasonShrunk,
				"%s is flagged for a lost place, and nothing is said of it: %s", r.ID, h)
		}
		require.Equal(h.r, homeless, slices.Contains(o.Homeless(), r.ID), "%s", r.ID)
	}
}

// collectClaims notes what is said to come next.
func (h *history) collectClaims() {
	o := h.outlook()
	leaving := slices.ContainsFunc(h.liveSnapshot().Nodes,
		func(n node.Node) bool { return n.State() != node.Ready && !n.Coming() })
	for _, id := range h.subjectIDs() {
		var until time.Time
		for _, x := range o.Obstacles(id) {
			if x.Code == plan.HeldCapped || x.Code == plan.HeldRefused {
				require.True(h.r, x.Until.After(h.now), "%s is held back by what is over", id)
				until = later(until, x.Until)
			}
		}
		if !until.IsZero() && !leaving &&
			len(h.Paused) == 0 { // whoever comes before may need a node on a slot that is not free yet
			h.noteClaim(claim{plan.HeldCapped, id, until})
		}
		for _, s := range o.Next(id) {
			require.True(h.r, s.At.After(h.now), "%s: %s is over", id, s.Code)
			h.noteClaim(claim{s.Code, id, s.At})
		}
	}
}

// noteClaim keeps what was said first.
func (h *history) noteClaim(c claim) {
	if _, ok := h.said[c.code+" "+c.subject]; !ok {
		h.said[c.code+" "+c.subject] = c
	}
}

func (h *history) forgetClaims(code string) {
	for key := range h.said {
		if strings.HasPrefix(key, code+" ") {
			delete(h.said, key)
		}
	}
}

// verifyClaims fails when the time of something has come and it has not happened, or when
// it has happened before.
func (h *history) verifyClaims() {
	for key, c := range h.said {
		come := !c.at.After(h.now)
		state, slots := h.stateOf(c.subject)
		over := func(states ...string) {
			if come {
				require.NotContains(h.r, states, state, "%s of %s was to come at %s, it is %s: %s", c.code, c.subject,
					c.at, h.now, h)
			}
		}
		switch c.code {
		case plan.StepWarm:
			over("booked")
			if !come {
				require.NotEqual(h.r, "warming", state, "%s is warmed before it was said", c.subject)
			}
		case plan.StepLease:
			over("active")
			if !come {
				require.Equal(h.r, "active", state, "%s ends before it was said", c.subject)
			}
		case plan.StepGivesUp:
			over("pending", "waitlisted")
			if state != "pending" && state != "waitlisted" {
				delete(h.said, key)
			}
			continue
		case plan.StepEnd:
			over("booked", "warming", "ready")
		case plan.HeldCapped:
			for _, slot := range slots {
				_, there := h.onSlot(slot)
				there = there || slot >= h.Pool.MaxNodes // the pool was made smaller, which is said beside it
				waits := state == "pending" || state == "warming"
				require.False(h.r, come && waits && !there, "%s was to have a node on %d by %s, it is %s: %s",
					c.subject, slot, c.at, h.now, h)
			}
		}
		if come {
			delete(h.said, key)
		}
	}
}

func (h *history) stateOf(id string) (state string, slots []int) {
	if i := slices.IndexFunc(h.Allocations, func(a allocation.Allocation) bool { return a.ID == id }); i >= 0 {
		return string(h.Allocations[i].State()), h.Allocations[i].Slots
	}
	i := slices.IndexFunc(h.Reservations, func(r reservation.Reservation) bool { return r.ID == id })
	return string(h.Reservations[i].State()), h.Reservations[i].Slots
}
