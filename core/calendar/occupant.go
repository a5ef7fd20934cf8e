package calendar

import "iter"

// Occupant is whoever can take GPUs of a pool for some time: a reservation with its
// place, an allocation, GPUs that are being cleaned, a node that an operator keeps.
// Whether GPUs are free is asked of the calendar alone, so whoever is to be seen, also
// by somebody whom the ledger did not serve, is an occupant.
type Occupant interface {
	// Occupies returns the occupant's entry in the calendar of a pool with so many GPUs
	// a slot, and whether it takes that place now. The entry's id never changes, and
	// no other occupant has it.
	Occupies(perSlot int) (entry Booking, takes bool)
}

// Occupants are rows as occupants, in their order.
func Occupants[T any, P interface {
	*T
	Occupant
}](rows []T) iter.Seq[Occupant] {
	return func(yield func(Occupant) bool) {
		for i := range rows {
			if !yield(P(&rows[i])) {
				return
			}
		}
	}
}

// Occupy shows what an occupant takes now in place of what it took before, or takes
// its entry out. A place that others have too is shown all the same, as by Force.
func (s *Slots) Occupy(o Occupant) {
	entry, takes := o.Occupies(s.perSlot)
	if !takes {
		s.Remove(entry.ID)
		return
	}
	s.Force(entry)
}
