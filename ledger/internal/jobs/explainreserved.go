package jobs

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
)

// mostNamed is how many reservations an explanation names.
const mostNamed = 5

// reservedAhead are the reservations that have a place in the job's pool in the time for which it would run, if it
// started now, in the order of their starts. One that the job is to run in is none of them.
func reservedAhead(r ledger.Reader, j job.Job) ([]reservation.Reservation, error) {
	p, err := r.LiveState(j.PoolID)
	if err != nil {
		return nil, fmt.Errorf("reading pool %s: %w", j.PoolID, err)
	}
	runs := calendar.Interval{Start: r.Now(), End: r.Now().Add(booking.LeaseOfJob(j))}
	var found []reservation.Reservation
	for _, other := range p.Reservations {
		if other.Placed() && other.ID != j.Reservation && other.Window.Overlaps(runs) {
			found = append(found, other)
		}
	}
	slices.SortFunc(found, func(a, b reservation.Reservation) int { return a.Window.Start.Compare(b.Window.Start) })
	return found, nil
}

// blockedByReservations says what is reserved of the GPUs that a job finds no place on.
func blockedByReservations(e *ledger.Explanation, j job.Job, reserved []reservation.Reservation) {
	full := e.Refused != nil && slices.ContainsFunc(e.Refused.Decision.Reasons, func(r admission.Reason) bool {
		return r.Code == admission.CapacityExhausted
	})
	if !full || len(reserved) == 0 {
		return
	}
	gpus, first := 0, reserved[0].Window
	b := ledger.Blocker{Code: "reserved"}
	for i, r := range reserved {
		gpus += r.Shape.GPUs()
		if r.Window.End.Before(first.End) {
			first = r.Window
		}
		if i < mostNamed {
			b.Evidence = append(b.Evidence, nameReservation(e, j, r))
		}
	}
	b.Message = fmt.Sprintf("%s hold %s of its pool in the time that it would run.",
		phrase.Count(len(reserved), "reservation"), phrase.Count(gpus, "GPU"))
	if len(reserved) == 1 {
		b.Message = fmt.Sprintf("A reservation holds %s of its pool in the time that it would run.",
			phrase.Count(gpus, "GPU"))
	}
	b.ClearsAt = &ledger.Band{P10: first.End, P50: first.End, P90: first.End}
	if shorter := shortenText(e, j); shorter != "" {
		b.Fix = "if it needs no longer: " + shorter
	}
	e.Blockers = append(e.Blockers, b)
}

// fitsBefore is how long a job may run that starts now, by what admission offers; 0: it could not.
func fitsBefore(e *ledger.Explanation, j job.Job) (longest time.Duration) {
	beside := booking.LeaseOfJob(j) - j.MaxRuntime // for its start and its end
	for _, o := range e.Refused.Decision.Offers {
		if o.Pool == j.PoolID && o.Shape == j.Shape && !o.Window.Start.After(e.At) {
			longest = max(longest, o.Window.Length()-beside)
		}
	}
	return longest
}

// shortenText is the command by which a job is short enough to start now; empty: no length is.
func shortenText(e *ledger.Explanation, j job.Job) string {
	if fits := fitsBefore(e, j); fits >= time.Minute {
		return fmt.Sprintf("forewarm jobs edit %s --max-runtime %dm", j.ID, fits/time.Minute)
	}
	return ""
}

// takeOffer is the command by which a job that waits takes an offer of admission's: another pool, or a shorter time.
// Its GPUs stay as they are.
func takeOffer(e *ledger.Explanation, j job.Job) string {
	for _, o := range e.Refused.Decision.Offers {
		if o.Pool != j.PoolID && o.Shape == j.Shape && !o.Window.Start.After(e.At) && !inReservation(j) {
			return "forewarm jobs edit " + j.ID + " --to-pool " + o.Pool
		}
	}
	return shortenText(e, j)
}

// nameReservation tells of a reservation; those of others have no name.
func nameReservation(e *ledger.Explanation, j job.Job, r reservation.Reservation) string {
	whose := "a reservation of another organization"
	if r.OrganizationID == j.OrganizationID {
		whose = r.ID
		if r.Name != "" {
			whose += " (" + r.Name + ")"
		}
	}
	return fmt.Sprintf("%s: %s from %s to %s", whose, phrase.Count(r.Shape.GPUs(), "GPU"),
		ledger.FormatTimeSeen(r.Window.Start, e.At), ledger.FormatTimeSeen(r.Window.End, e.At))
}
