package plan

import (
	"cmp"
	"slices"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
)

// retryWaitlist names those that wait for a place and may be tried now, in their
// order: promises before guesses, then who has the smaller share of the pool, then
// who asked first. Nobody is tried while somebody before waits for the same time:
// what becomes free would trickle away to the small and late.
func (c *computation) retryWaitlist() {
	var before spans
	for _, r := range c.waitingInOrder() {
		behind := before.addSpan(r.Window, r.ID)
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
		return cmp.Or(cmp.Compare(classRank(a), classRank(b)),
			cmp.Compare(c.Shares[a.OrganizationID], c.Shares[b.OrganizationID]),
			a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return waiting
}

func classRank(r *reservation.Reservation) int {
	if r.Class == reservation.Speculative {
		return 1
	}
	return 0
}

// spans are disjoint intervals in order, each with the first who asked for a part
// of it.
type spans []span

type span struct {
	calendar.Interval
	first string
}

// addSpan joins an interval to the spans and returns who was first in one that it
// overlaps, if any.
func (s *spans) addSpan(iv calendar.Interval, id string) string {
	from, _ := slices.BinarySearchFunc(*s, iv, func(o span, iv calendar.Interval) int {
		if o.End.After(iv.Start) {
			return 1
		}
		return -1
	})
	to, first := from, ""
	whole := span{iv, id}
	for ; to < len(*s) && (*s)[to].Overlaps(iv); to++ {
		o := (*s)[to]
		if first == "" {
			first, whole.first = o.first, o.first
		}
		whole.Start, whole.End = earlier(whole.Start, o.Start), later(whole.End, o.End)
	}
	*s = slices.Replace(*s, from, to, whole)
	return first
}
