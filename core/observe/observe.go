// Package observe decides what the work that a cluster's own scheduler placed means
// for the promises of an observed pool.
//
// A promise there is of a number of warm nodes. Work that begins on nodes which were
// kept warm, within a promise's window, claims as many of its nodes as it takes: that
// is what the promise was for. Nothing else is a claim. Work that found another warm
// node, or had to wait for one, is counted, and leaves the promise to those who come
// later.
package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// Start is work that began, as far as it is on nodes that were kept warm.
type Start struct {
	OrganizationID string
	At             time.Time
	Slots          []int // of its nodes, each of which was ready before it began
	Nodes          int   // of the work in all: of a gang, those that were not warm too
}

// Claim is what work takes of one promise.
type Claim struct {
	ReservationID string
	Slots         []int // that the promise gives up; all that it has: it is claimed whole
}

// Claims returns what a start takes of the organization's promises: first of those that
// are ready, then of those that are due soonest. A gang of which a node was not warm
// claims nothing, for it waited all the same. A guaranteed promise is claimed within its
// window: work that comes earlier takes a node, and not what somebody counts on at nine. A
// speculative one, which only says that work will come about then, is claimed up to lead
// before its window, too.
func Claims(promises []reservation.Reservation, s Start, lead time.Duration) []Claim {
	if s.Nodes == 0 || len(s.Slots) < s.Nodes {
		return nil
	}
	due := slices.DeleteFunc(slices.Clone(promises), func(r reservation.Reservation) bool {
		from := r.Window.Start
		if r.Class == reservation.Speculative {
			from = from.Add(-lead)
		}
		return !r.Placed() || r.OrganizationID != s.OrganizationID || s.At.Before(from) || !s.At.Before(r.Window.End)
	})
	slices.SortFunc(due, func(a, b reservation.Reservation) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), a.Window.Start.Compare(b.Window.Start), cmp.Compare(a.ID, b.ID))
	})
	var claims []Claim
	left := s.Nodes
	for _, r := range due {
		if left == 0 {
			break
		}
		gives := givenUp(r, s.Slots, min(left, len(r.Slots)))
		left -= len(gives)
		claims = append(claims, Claim{ReservationID: r.ID, Slots: gives})
	}
	return claims
}

// WasWarm reports whether a node was kept warm at a time that lies behind: it had become
// ready and was not let go. One that the cluster suspended while nobody watched may have been
// powered up again by others, for which its next work waited: boots are the times at which
// work began there after a wait. What came later found a node that they had paid for.
func WasWarm(n node.Node, at time.Time, boots []time.Time) bool {
	if n.ReadyAt.IsZero() || at.Before(n.ReadyAt) {
		return false
	}
	for _, end := range []time.Time{n.RetiredAt, n.BilledUntil, n.GoneAt} {
		if !end.IsZero() && !at.Before(end) {
			return false
		}
	}
	return !slices.ContainsFunc(boots, func(boot time.Time) bool {
		return boot.After(n.ReadyAt) && !boot.After(at)
	})
}

// rank orders promises by how far they are.
func rank(r reservation.Reservation) int {
	return slices.Index([]reservation.State{reservation.Booked, reservation.Warming, reservation.Ready}, r.State())
}

// givenUp picks the slots that a promise gives up: those that the work is on, then its
// last ones.
func givenUp(r reservation.Reservation, taken []int, count int) []int {
	var gives []int
	for _, slot := range r.Slots {
		if len(gives) < count && slices.Contains(taken, slot) {
			gives = append(gives, slot)
		}
	}
	for _, slot := range slices.Backward(r.Slots) {
		if len(gives) < count && !slices.Contains(gives, slot) {
			gives = append(gives, slot)
		}
	}
	return gives
}
