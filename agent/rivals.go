package agent

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// ReservationReader reads a reservation, by id.
type ReservationReader interface {
	Reservation(ctx context.Context, id string) (contract.Reservation, error)
}

// How often the agent looks whether another plan took the place of its own, at most, and says so.
const (
	rivalsLooked = time.Minute
	rivalsTold   = 5 * time.Minute
)

// replanned is the reason of reservations that a later plan of the same key no longer asked for.
const replanned = "replanned"

// rivals is what is remembered to notice that something else writes plans with the agent's key.
type rivals struct {
	placed       map[string]time.Time // ends of the reservations that the last plan led to, by id
	looked, told time.Time
}

// watchRivals compares what a plan led to with what the one before did. Where a reservation is gone and another was
// placed, it looks whether the agent's own plan gave it up, in one instant, or an earlier one that was not the agent's.
func (a *Agent) watchRivals(ctx context.Context, outcome contract.PlanOutcome) {
	now, before := a.cfg.Clock.Now(), a.rivals.placed
	after, placed := reservationsOf(outcome)
	a.rivals.placed = after
	gone := ""
	for id, end := range before {
		if _, kept := after[id]; !kept && end.After(now) {
			gone = max(gone, id)
		}
	}
	if a.cfg.Placed == nil || gone == "" || placed == "" || now.Sub(a.rivals.looked) < rivalsLooked {
		return
	}
	a.rivals.looked = now
	if a.isRivals(ctx, gone, placed) && now.Sub(a.rivals.told) >= rivalsTold {
		a.rivals.told = now
		a.cfg.Logger.Warn("another agent writes plans with this key: it cancelled a reservation of this one, and each plan "+
			"cancels the other's; give each agent a key of its own", "reservation", gone, "pool", a.cfg.PoolID)
	}
}

// isRivals reports whether a plan before the one that led to placed cancelled gone.
func (a *Agent) isRivals(ctx context.Context, gone, placed string) bool {
	lost, err := a.cfg.Placed.Reservation(ctx, gone)
	if err != nil || lost.Reason != replanned {
		return false
	}
	made, err := a.cfg.Placed.Reservation(ctx, placed)
	return err == nil && lost.EndedAt.Before(made.CreatedAt)
}

// reservationsOf lists what a plan led to, and one that it placed. Those that were placed stand after those that were
// kept.
func reservationsOf(outcome contract.PlanOutcome) (all map[string]time.Time, placed string) {
	all = map[string]time.Time{}
	for _, w := range outcome.Windows {
		for i, id := range w.ReservationIDs {
			all[id] = w.End
			if i >= w.Kept {
				placed = id
			}
		}
	}
	return all, placed
}
