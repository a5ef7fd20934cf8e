package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
)

// claimable is what jobs may claim by themselves now, but for what a job names, which is that job's. What is left of
// one reservation is one, however many rows that is.
func claimable(q queue) (all []scheduler.Reserved) {
	at := map[string]int{}
	booked := bookedAfter{pool: q.pool}
	for _, r := range q.pool.Reservations {
		if !booking.IsClaimable(r, q.now) || q.named[r.ID] || isOutside(q, r) || r.ForJobs == reservation.NoJobs {
			continue
		}
		if _, known := at[r.Whole()]; !known {
			at[r.Whole()] = len(all)
			all = append(all, scheduler.Reserved{ID: r.Whole(), For: r.Claimants(), Until: r.Window.End,
				FreeUntil: map[string]time.Time{}})
		}
		is := &all[at[r.Whole()]]
		for i, slot := range r.Slots {
			is.Spots = addSpot(is.Spots, placementSpot(slot, r.Shape.On(i)))
			if until := booked.freeUntil(slot, r.Window.End); !until.IsZero() {
				is.FreeUntil[nameOfSlot(slot)] = until
			}
		}
	}
	return all
}

// addSpot adds GPUs to those of the same node, if there are any.
func addSpot(spots placement.Placement, more placement.Spot) placement.Placement {
	i := slices.IndexFunc(spots, func(s placement.Spot) bool { return s.Node == more.Node })
	if i < 0 {
		return append(spots, more)
	}
	spots[i].GPUs += more.GPUs
	return spots
}

// isOutside reports whether a reservation lies on slots that the pool no longer has.
func isOutside(q queue, r reservation.Reservation) bool {
	return slices.ContainsFunc(r.Slots, func(slot int) bool { return slot >= q.pool.Pool.MaxNodes })
}

// namedBy are the reservations that jobs name in which they are to run.
func namedBy(live []job.Job) map[string]bool {
	named := map[string]bool{}
	for _, j := range live {
		if inReservation(j) {
			named[j.Reservation] = true
		}
	}
	return named
}

// claimOf is what a start claims, as the ledger has it.
func claimOf(s scheduler.Start) booking.PartClaim {
	if s.Claims == "" {
		return booking.PartClaim{}
	}
	return booking.PartClaim{Reservation: s.Claims, Slots: slotsOf(s.Spots)}
}

func slotsOf(spots placement.Placement) []int {
	slots := make([]int, len(spots))
	for i, spot := range spots {
		slots[i], _ = strconv.Atoi(strings.TrimPrefix(spot.Node, slotPrefix)) // nameOfSlot made it
	}
	return slots
}

// tellClaimed says of a job that has its GPUs by which reservations it has them.
func tellClaimed(r ledger.Reader, e *ledger.Explanation, j job.Job) error {
	if !j.HasGPUs() {
		return nil
	}
	all := ledger.Scope{All: true} // the job's are its organization's
	a, err := r.Allocation(all, j.AllocationID)
	if err != nil || len(a.Reservations) == 0 {
		return ledger.IgnoreMissing(err)
	}
	names := make([]string, 0, len(a.Reservations))
	for _, id := range a.Reservations {
		is, err := r.Reservation(all, id)
		if ledger.IgnoreMissing(err) != nil {
			return fmt.Errorf("reading what job %s claimed: %w", j.ID, err)
		}
		if is.Name != "" {
			id += " (" + is.Name + ")"
		}
		names = append(names, id)
	}
	text := "It claimed reservation "
	if !a.ActiveAt.IsZero() && a.ActiveAt.Sub(a.RequestedAt) <= allocation.ZeroWait {
		text = "It started at once, as it claimed reservation "
	}
	e.Summary = strings.TrimSpace(e.Summary + " " + text + strings.Join(names, " and ") + ".")
	return nil
}

// blockedByShortClaim says of what a job would claim, were it over before others have the GPUs, how short it has to be.
func blockedByShortClaim(e *ledger.Explanation, j job.Job, p ledger.PoolState, reserved []reservation.Reservation) {
	booked, ends := bookedAfter{pool: p}, e.At.Add(booking.LeaseOfJob(j))
	told := map[string]bool{}
	for _, r := range reserved {
		if told[r.Whole()] || !booking.IsClaimable(r, e.At) {
			continue
		}
		told[r.Whole()] = true
		rows := slices.DeleteFunc(slices.Clone(reserved), func(o reservation.Reservation) bool {
			return o.Whole() != r.Whole() || !booking.IsClaimable(o, e.At)
		})
		if !booking.ClaimableLater(rows, j, e.At) || booking.ClaimableLater(booked.freeBy(rows, ends), j, e.At) {
			continue // it is too small, or not for that reason
		}
		beside := booking.LeaseOfJob(j) - j.MaxRuntime
		fits := r.Window.End.Sub(e.At) - beside
		if fits >= j.MaxRuntime {
			continue
		}
		b := ledger.Blocker{Code: "reservation_too_short", Message: fmt.Sprintf("It may run for longer than %s lasts, "+
			"which it would claim, and others have reserved those GPUs after it.", nameReservation(e, j, r))}
		if fits >= time.Minute {
			b.Fix = fmt.Sprintf("if it needs no longer: forewarm jobs edit %s --max-runtime %dm", j.ID, fits/time.Minute)
		}
		e.Blockers = append(e.Blockers, b)
	}
}
