package ledger

import (
	"iter"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
)

// Planned is what a plan leaves to others.
type Planned struct {
	Waitlisted []string // reservations that may have a place now
	Withheld   []plan.Withheld
}

// ChooseOffering returns the offering that a node is asked of, and what is
// learned of it: the best by price, odds and the time until the next
// reservation needs the node.
func (p Pool) ChooseOffering(reservations iter.Seq[reservation.Reservation], n node.Node,
	now time.Time) (capacity.Offering, learned.Learned) {
	deadline := time.Time{}
	for r := range reservations {
		due := r.Live() && r.Window.Start.After(now) && (n.Slot < 0 || slices.Contains(r.Slots, n.Slot))
		if due && (deadline.IsZero() || r.Window.Start.Before(deadline)) {
			deadline = r.Window.Start
		}
	}
	usual := now.Add(p.Boot.P95())
	if deadline.Before(usual) {
		deadline = usual
	}
	return p.Learned.Choose(p.Pool, deadline, now)
}
