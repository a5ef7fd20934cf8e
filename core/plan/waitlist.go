package plan

import (
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/priority"
	"github.com/forewarm/forewarm/core/reservation"
)

// retryWaitlist names those that wait for a place and may be tried now, in the order
// in which they are served. Nobody is tried while somebody before waits for the same
// time.
func (c *computation) retryWaitlist() {
	var queue priority.Queue
	for _, r := range c.waitingInOrder() {
		behind := queue.Join(r.ID, r.Window)
		f := reservationFacts(c, r)
		f.Share, f.Behind = c.Shares[r.OrganizationID], behind
		c.judge(Action{Kind: RetryWaitlisted, Subject: r.ID, Facts: f})
	}
}

// waitingInOrder is the waitlist without what is over, paused, or larger than the pool,
// which nobody can wait behind.
func (c *computation) waitingInOrder() []*reservation.Reservation {
	var waiting []*reservation.Reservation
	for _, r := range c.near {
		if r.State() == reservation.Waitlisted && r.Window.End.After(c.now) && !c.isPaused(r) &&
			r.Shape.Nodes <= c.Pool.MaxNodes && r.Shape.PerNode <= c.Pool.PerNode {
			waiting = append(waiting, r)
		}
	}
	slices.SortFunc(waiting, func(a, b *reservation.Reservation) int {
		return priority.ServeByShare(reservationClaimant(c, a), reservationClaimant(c, b))
	})
	return waiting
}

// reservationClaimant is a reservation as one of those that want the pool's GPUs.
func reservationClaimant(c *computation, r *reservation.Reservation) priority.Claimant {
	return priority.Claimant{ID: r.ID, Speculative: r.Class == reservation.Speculative,
		Share: c.Shares[r.OrganizationID], Start: r.Window.Start, Since: r.CreatedAt}
}

// allocationClaimant is an allocation as one of those that want GPUs at once.
func allocationClaimant(a *allocation.Allocation) priority.Claimant {
	return priority.Claimant{ID: a.ID, Start: a.Window.Start, Since: a.EnteredAt()}
}
