// Package invariants says what must be true of the ledger's rows at every
// moment, no matter who did what and in which order. It is pure: tests,
// simulations and a running installation give it rows and read what it finds.
//
// The names are those under which the design lists the invariants.
package invariants

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// Invariant names a statement.
type Invariant string

// The statements about one moment.
const (
	OneHolder   Invariant = "I1"  // a GPU is in at most one pair of hands
	OneNode     Invariant = "I4"  // a slot has at most one node that is not gone
	Capacity    Invariant = "I8"  // no slot is promised beyond its GPUs at any instant, now or later
	NoSilence   Invariant = "I9"  // what ended says why, and an event tells of it
	Quota       Invariant = "I10" // an organization is within its limit at every instant, by recount
	Money       Invariant = "I11" // no cost is negative
	Transitions Invariant = "I16" // rows move only along the listed transitions, and their versions grow
)

// Violation is one statement that does not hold.
type Violation struct {
	Invariant Invariant
	Subject   string // id of what it is about
	What      string // one sentence for people
}

// String renders the violation in one line.
func (v Violation) String() string { return fmt.Sprintf("%s %s: %s", v.Invariant, v.Subject, v.What) }

// Rows are the ledger at one moment. The caller keeps them; they are only read.
type Rows struct {
	// Now is when they were read: what was booked before it is over. A promise that moves to
	// another slot has its window there from then on. Zero: all of every window counts.
	Now           time.Time
	Organizations []ledger.Organization
	Pools         []ledger.PoolState
	// Committed is what the ledger itself counts for an organization, over all
	// pools. One that is missing is not compared.
	Committed map[string]*calendar.Profile
	// Over are reservations and allocations that have ended.
	OverReservations []reservation.Reservation
	OverAllocations  []allocation.Allocation
	// Events are those about what is over. Nil: the journal is not looked at.
	Events []ledger.Event
}

// Check returns every violation in the rows, ordered by invariant and subject.
func Check(rows Rows) []Violation {
	var found []Violation
	for _, p := range rows.Pools {
		found = append(found, checkHolders(p)...)
		found = append(found, slotNodes(p)...)
		found = append(found, checkSlots(p, rows.Now)...)
		found = append(found, checkCosts(p)...)
	}
	found = append(found, checkQuotas(rows)...)
	if rows.Events != nil {
		found = append(found, checkReasons(rows)...)
	}
	return sortViolations(found)
}

func sortViolations(found []Violation) []Violation {
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.What, b.What))
	})
	return found
}

// checkHolders checks that no device is held twice, and that whoever is active holds
// as many as it was promised.
func checkHolders(p ledger.PoolState) []Violation {
	var found []Violation
	holder := map[string]string{}
	for _, a := range p.Allocations {
		if !a.Holds() {
			continue
		}
		for _, d := range a.Devices {
			if other, taken := holder[d.UUID]; taken {
				found = append(found, Violation{OneHolder, d.UUID, fmt.Sprintf("is held by %s and by %s", other, a.ID)})
			}
			holder[d.UUID] = a.ID
		}
		if len(a.Devices) != a.Shape.GPUs() && !(a.Observed() && len(a.Devices) < a.Shape.GPUs()) {
			found = append(found, Violation{OneHolder, a.ID,
				fmt.Sprintf("holds %d GPUs of %d", len(a.Devices), a.Shape.GPUs())})
		}
	}
	return found
}

func slotNodes(p ledger.PoolState) []Violation {
	var found []Violation
	on := map[int]string{}
	for _, n := range p.Nodes {
		if node.Machine.Terminal(n.State()) {
			continue
		}
		if other, taken := on[n.Slot]; taken {
			found = append(found, Violation{OneNode, n.ID, fmt.Sprintf("shares slot %d with %s", n.Slot, other)})
		}
		on[n.Slot] = n.ID
	}
	return found
}

func checkCosts(p ledger.PoolState) []Violation {
	var found []Violation
	for _, r := range p.Reservations {
		if r.Cost < 0 {
			found = append(found, Violation{Money, r.ID, fmt.Sprintf("costs %s", r.Cost)})
		}
	}
	return found
}

// checkReasons checks that everything that is over has a reason, and an event that
// gives it. The state in the event's type is the one it ended in.
func checkReasons(rows Rows) []Violation {
	told := make(map[string]bool, len(rows.Events))
	for _, e := range rows.Events {
		if e.Reason != "" {
			told[e.Type+" "+e.Subject] = true
		}
	}
	var found []Violation
	check := func(kind, id, state, reason string) {
		if reason == "" || !told[kind+"."+state+" "+id] {
			found = append(found, Violation{NoSilence, id,
				fmt.Sprintf("is %s without an event that says why (reason %q)", state, reason)})
		}
	}
	for _, r := range rows.OverReservations {
		check("reservation", r.ID, string(r.State()), r.Reason)
	}
	for _, a := range rows.OverAllocations {
		check("allocation", a.ID, string(a.State()), a.Reason)
	}
	return found
}
