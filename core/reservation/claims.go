package reservation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
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

// Claimants are those whose jobs claim a reservation by themselves.
type Claimants struct {
	ForJobs
	Maker Submitter // who made it
}

// IsOf reports whether a reservation is the submitter's own: the same person made it, or the same key.
func (c Claimants) IsOf(s Submitter) bool {
	m := c.Maker
	return m.OrganizationID == s.OrganizationID && (m.UserID != "" && m.UserID == s.UserID ||
		m.KeyID != "" && m.KeyID == s.KeyID)
}

// Serves reports whether a job of the submitter claims the reservation by itself.
func (c Claimants) Serves(s Submitter) bool {
	switch c.ForJobs {
	case OwnJobs:
		return c.IsOf(s)
	case OrganizationJobs:
		return c.Maker.OrganizationID == s.OrganizationID
	}
	return false
}

// Claimants are those whose jobs claim the reservation by themselves.
func (r Reservation) Claimants() Claimants {
	return Claimants{r.ForJobs, Submitter{OrganizationID: r.OrganizationID, UserID: r.UserID, KeyID: r.MadeBy}}
}

// Whole is the id of the reservation of which this one is what jobs have left, or its own.
func (r Reservation) Whole() string { return cmp.Or(r.PartOf, r.ID) }

// Carve divides the reservation: parts, which have so many of its GPUs on each slot as take says, and what is left of
// it. Each is of as few rows as their numbers of GPUs allow. What is left keeps the reservation's id where anything is,
// and the first of the parts has it where nothing is; the other rows are new, and not stored yet. Each costs its GPUs'
// share of what was agreed on, to the micro-dollar. It returns false where the reservation has not so many there, or
// nothing is taken.
func (r Reservation) Carve(take map[int]int, newID func() string) (rest, parts []Reservation, ok bool) {
	left, taken := map[int]int{}, 0
	for i, slot := range r.Slots {
		left[slot] = r.Shape.On(i)
	}
	for slot, gpus := range take {
		if left[slot] -= gpus; gpus < 0 || left[slot] < 0 {
			return nil, nil, false
		}
		taken += gpus
	}
	if taken == 0 {
		return nil, nil, false
	}
	rest, parts = r.rowsOf(left), r.rowsOf(take)
	all := make([]*Reservation, 0, len(rest)+len(parts))
	for _, rows := range [][]Reservation{rest, parts} {
		for i := range rows {
			all = append(all, &rows[i])
		}
	}
	all[0].Cost = r.Cost
	for _, row := range all[1:] {
		row.ID, row.Version = newID(), 0
		all[0].Cost -= row.Cost
	}
	return rest, parts, true
}

// rowsOf are rows that have so many of the reservation's GPUs on its slots, the most of them first, and are else as the
// reservation is.
func (r Reservation) rowsOf(gpus map[int]int) (rows []Reservation) {
	each := r.Cost / money.MicroUSD(r.Shape.GPUs())
	for _, group := range groupSlots(r.Slots, gpus) {
		row := r
		row.Slots, row.PartOf = group, r.Whole()
		row.Shape = capacity.Shape{Nodes: len(group), PerNode: gpus[group[0]]}
		row.Shape.Short = row.Shape.PerNode - gpus[group[len(group)-1]]
		row.Cost = each * money.MicroUSD(row.Shape.GPUs())
		rows = append(rows, row)
	}
	return rows
}

// groupSlots groups those slots that have GPUs as shapes allow: all of a group have as many, and where that gives two
// groups, a single slot with fewer is the last one of the other group.
func groupSlots(slots []int, gpus map[int]int) (groups [][]int) {
	by := map[int][]int{}
	for _, slot := range slots {
		if gpus[slot] > 0 {
			by[gpus[slot]] = append(by[gpus[slot]], slot)
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(by), func(a, b int) int { return b - a }) {
		groups = append(groups, by[n])
	}
	if len(groups) == 2 && len(groups[1]) == 1 {
		return [][]int{append(groups[0], groups[1]...)}
	}
	slices.SortStableFunc(groups, func(a, b []int) int { return len(b)*gpus[b[0]] - len(a)*gpus[a[0]] })
	return groups
}

// leastRest is how much of a reservation's time has to be left for anybody to use it.
const leastRest = time.Minute

// After is what is left of a reservation after an allocation that used GPUs of it, which are those of the shape on the
// slots: a new row, which is not stored yet, from an instant until the reservation ends. It returns false where that
// leaves no time.
func (r Reservation) After(a Used, from time.Time, id string, now time.Time) (Reservation, bool) {
	if r.Window.End.Sub(from) < leastRest {
		return r, false
	}
	later, err := New(Reservation{ID: id, OrganizationID: r.OrganizationID, PoolID: r.PoolID, Name: r.Name,
		Class: r.Class, Origin: r.Origin, MadeBy: r.MadeBy, UserID: r.UserID, Workload: r.Workload,
		Window: calendar.Interval{Start: from, End: r.Window.End}, Shape: a.Shape, Slots: slices.Clone(a.Slots),
		ForJobs: r.ForJobs, ReasonCode: r.ReasonCode, Probability: r.Probability,
		PartOf: r.Whole(), Awaits: a.By}, Booked, now)
	return later, err == nil
}

// Used is what an allocation has of a reservation.
type Used struct {
	By    string // the allocation's id
	Shape capacity.Shape
	Slots []int
}
