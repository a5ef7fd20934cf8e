package reservation

import (
	"cmp"
	"slices"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
)

// ForJobs says whose jobs claim a reservation by themselves. A job that names the reservation, and a person who claims
// it, do so whatever it says.
type ForJobs string

// Whose jobs claim a reservation.
const (
	NoJobs           ForJobs = "none"
	OwnJobs          ForJobs = "mine"         // of the person, or key, that made it
	OrganizationJobs ForJobs = "organization" // of all of its organization
)

// usualClaimants is whose jobs claim a reservation that does not say: what a person reserved may be for something
// else than a colleague's jobs, and what a schedule or an agent warms ahead is for whoever comes.
func (r Reservation) usualClaimants() ForJobs {
	if r.Class == Speculative || r.Origin == FromSchedule || r.Origin == FromAgent {
		return OrganizationJobs
	}
	return OwnJobs
}

// Submitter is whose job it is that may claim a reservation.
type Submitter struct{ OrganizationID, UserID, KeyID string }

// IsOf reports whether a reservation is the submitter's own: the same person made it, or the same key.
func (r Reservation) IsOf(s Submitter) bool {
	return r.OrganizationID == s.OrganizationID && (r.UserID != "" && r.UserID == s.UserID || r.MadeBy == s.KeyID)
}

// Serves reports whether a job of the submitter claims the reservation by itself.
func (r Reservation) Serves(s Submitter) bool {
	switch r.ForJobs {
	case OwnJobs:
		return r.IsOf(s)
	case OrganizationJobs:
		return r.OrganizationID == s.OrganizationID
	}
	return false
}

// Carve divides the reservation in two: part, which has so many of its GPUs on each of some of its slots as shape
// says, and what is left of it. What is left keeps the reservation's id where anything is, and is of several rows where
// its nodes have not as many GPUs left; the part has a new id then. New rows are not stored yet. Each costs its GPUs'
// share of what was agreed on, to the micro-dollar. It returns false where the reservation has not so many there.
func (r Reservation) Carve(shape capacity.Shape, slots []int, newID func() string) (
	rest []Reservation, part Reservation, ok bool) {
	left := map[int]int{}
	for i, slot := range r.Slots {
		left[slot] = r.Shape.On(i)
	}
	for i, slot := range slots {
		if left[slot] -= shape.On(i); left[slot] < 0 {
			return nil, r, false
		}
	}
	if len(slots) != shape.Nodes || len(slots) == 0 {
		return nil, r, false
	}
	for _, group := range slotsByLeft(r.Slots, left) {
		rest = append(rest, r.with(capacity.Shape{Nodes: len(group), PerNode: left[group[0]]}, group))
	}
	part = r.with(shape, slices.Clone(slots))
	part.Cost = r.Cost
	for i := range rest {
		part.Cost -= rest[i].Cost
		if i > 0 {
			rest[i].ID, rest[i].Version = newID(), 0
		}
	}
	if len(rest) > 0 {
		part.ID, part.Version = newID(), 0
	}
	return rest, part, true
}

// with is the reservation with other GPUs, and their share of its cost.
func (r Reservation) with(shape capacity.Shape, slots []int) Reservation {
	each := r.Cost / money.MicroUSD(r.Shape.GPUs())
	r.Shape, r.Slots, r.Cost = shape, slots, each*money.MicroUSD(shape.GPUs())
	return r
}

// slotsByLeft are the slots on which GPUs are left, those together that have as many, the most GPUs first.
func slotsByLeft(slots []int, left map[int]int) (groups [][]int) {
	by := map[int][]int{}
	for _, slot := range slots {
		if left[slot] > 0 {
			by[left[slot]] = append(by[left[slot]], slot)
		}
	}
	for _, group := range by {
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b []int) int {
		return cmp.Or(len(b)*left[b[0]]-len(a)*left[a[0]], left[b[0]]-left[a[0]])
	})
	return groups
}
