package invariants

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

// calendarBookings are all entries that a pool's calendar must have. It is built from
// the rows alone, on purpose without package calendar's own structures.
func calendarBookings(p ledger.PoolState) []calendar.Booking {
	var all []calendar.Booking
	for _, r := range p.Reservations {
		if r.Placed() {
			all = append(all, r.Booking())
		}
	}
	for _, a := range p.Allocations {
		if a.Live() && !a.Observed() {
			all = append(all, a.Booking())
		}
	}
	return all
}

// step is a change of a count at one instant.
type step struct {
	at time.Time
	by int
}

// peakOf returns the largest sum of the steps and when it is reached. At one
// instant what ends goes before what begins: intervals are half open.
func peakOf(steps []step) (most int, at time.Time) {
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	sum := 0
	for _, s := range steps {
		if sum += s.by; sum > most {
			most, at = sum, s.at
		}
	}
	return most, at
}

func stepsOver(iv calendar.Interval, n int) []step {
	if !iv.Valid() {
		return nil
	}
	return []step{{iv.Start, n}, {iv.End, -n}}
}

// checkSlots recounts what is booked on each slot from now on.
func checkSlots(p ledger.PoolState, now time.Time) []Violation {
	var found []Violation
	steps := map[int][]step{}
	for _, b := range calendarBookings(p) {
		for i, slot := range b.Slots {
			if slices.Contains(b.Slots[:i], slot) {
				found = append(found, Violation{Capacity, b.ID, fmt.Sprintf("is on slot %d twice", slot)})
			}
			left := calendar.Interval{Start: latest(b.Interval.Start, now), End: b.Interval.End}
			steps[slot] = append(steps[slot], stepsOver(left, b.Shape().On(i))...)
		}
	}
	for slot, of := range steps {
		if most, at := peakOf(of); most > p.Pool.PerNode {
			found = append(found, Violation{Capacity, p.Pool.ID,
				fmt.Sprintf("slot %d has %d GPUs and %d are booked at %s", slot, p.Pool.PerNode, most, formatTime(at))})
		}
	}
	return append(found, checkPlaces(p)...)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// checkPlaces checks that whatever is placed has as many places as it needs, inside
// the pool. What lost its place when the pool shrank is marked as degraded.
func checkPlaces(p ledger.PoolState) []Violation {
	var found []Violation
	check := func(id string, shape capacity.Shape, on []int, excused bool) {
		if !shape.Valid() {
			found = append(found, Violation{Capacity, id,
				fmt.Sprintf("has the shape %+v, which nothing can have", shape)})
		}
		if len(on) != shape.Nodes {
			found = append(found, Violation{Capacity, id,
				fmt.Sprintf("is on %d slots and needs %d", len(on), shape.Nodes)})
		}
		for _, slot := range on {
			if slot < 0 || slot >= p.Pool.MaxNodes && !excused {
				found = append(found, Violation{Capacity, id,
					fmt.Sprintf("is on slot %d of a pool of %d", slot, p.Pool.MaxNodes)})
			}
		}
	}
	for _, r := range p.Reservations {
		if r.Placed() {
			check(r.ID, r.Shape, r.Slots, r.Degraded)
		}
	}
	for _, a := range p.Allocations {
		if a.Live() && !a.Observed() {
			check(a.ID, a.Shape, a.Slots, true) // work that runs keeps its place until it ends
		}
	}
	return found
}

// compareCount compares steps, which peak has sorted, with what the ledger counts, at
// each instant at which either changes.
func compareCount(org string, steps []step, counted *calendar.Profile) []Violation {
	instants := slices.Clone(counted.Changes())
	for _, s := range steps {
		instants = append(instants, s.at)
	}
	slices.SortFunc(instants, time.Time.Compare)
	sum, next := 0, 0
	for _, at := range instants {
		for ; next < len(steps) && !steps[next].at.After(at); next++ {
			sum += steps[next].by
		}
		if n := counted.At(at); n != sum {
			return []Violation{{Quota, org, fmt.Sprintf("has %d GPUs at %s and the ledger counts %d", sum,
				formatTime(at),
				n)}}
		}
	}
	return nil
}
