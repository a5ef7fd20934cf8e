// Package outlook reads what the planner would do with a pool, without doing
// it, and so how long bookings will wait. It only reads: package core/plan
// computes what comes next, and package core/wait estimates the waits.
package outlook

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/wait"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
)

// Waits says how much longer things wait, on one snapshot, from the plans of their
// pools. It plans each pool once. It is not safe for concurrent use.
type Waits struct {
	r        ledger.Reader
	cfg      ledger.Config
	outlooks map[string]*plan.Outlook
	workers  *workers // nil: were not looked for yet
}

// workers says whether all are gone, and since when: zero, if none ever was.
type workers struct {
	gone  bool
	since time.Time
}

// NewWaits returns estimates on what r reads.
func NewWaits(cfg ledger.Config, r ledger.Reader) *Waits {
	return &Waits{r: r, cfg: cfg, outlooks: map[string]*plan.Outlook{}}
}

// poolOutlook is the plan of a pool.
func (w *Waits) poolOutlook(poolID string) (*plan.Outlook, error) {
	if o, ok := w.outlooks[poolID]; ok {
		return o, nil
	}
	state, err := w.r.LiveState(poolID)
	if err != nil {
		return nil, fmt.Errorf("reading pool: %w", err)
	}
	return w.ForeseePool(state)
}

// ForeseePool plans a pool from what the planner would have: the same learned values,
// the same pauses.
func (w *Waits) ForeseePool(state ledger.PoolState) (*plan.Outlook, error) {
	paused, err := w.r.Pauses()
	if err != nil {
		return nil, fmt.Errorf("reading what is paused: %w", err)
	}
	state.Nodes, state.Reservations, state.Allocations = slices.Clone(state.Nodes), slices.Clone(state.Reservations),
		slices.Clone(state.Allocations) // a plan changes them as it goes, and others look at them
	s := state.Snapshot()
	s.Paused = tenancy.ByOrganization(paused).PausedUntil()
	if len(state.Pool.Alternates) > 0 {
		_, s.Learned = state.Pool.ChooseOffering(slices.Values(state.Reservations), node.Node{Slot: -1}, w.r.Now())
	}
	if s.Pool.Timers.IdleReclaim > 0 {
		if s.Idle, err = ledger.IdleAllocations(w.r, state.Allocations); err != nil {
			return nil, err
		}
	}
	o := plan.Foresee(s, w.cfg.Policy, w.r.Now())
	w.outlooks[state.Pool.ID] = o
	return o, nil
}

// Allocation estimates when a pending allocation gets its GPUs; nil for one that
// does not wait, or is likely to expire before.
func (w *Waits) Allocation(a allocation.Allocation) (*wait.Estimate, error) {
	if a.State() != allocation.Pending {
		return nil, nil
	}
	return w.estimateWait(a.PoolID, a.ID, a.Window.End)
}

// Reservation estimates when a reservation gets a place, or when its nodes are
// warm if it has one and its time to warm has come; nil for one that does not
// wait, or whose time is likely to be over before.
func (w *Waits) Reservation(r reservation.Reservation) (*wait.Estimate, error) {
	if r.State() != reservation.Waitlisted && r.State() != reservation.Warming {
		return nil, nil
	}
	return w.estimateWait(r.PoolID, r.ID, r.Window.End)
}

// Expires reports whether a waitlisted reservation is likely to expire before it has
// a place.
func (w *Waits) Expires(r reservation.Reservation) (bool, error) {
	if r.State() != reservation.Waitlisted {
		return false, nil
	}
	o, err := w.poolOutlook(r.PoolID)
	if err != nil {
		return false, err
	}
	return o.Expires(r.ID, r.Window.End), nil
}

// WorkersGone reports whether no worker is there to do what is waited for, and since when:
// zero, if none ever was. Where the worker is a part of this process, it is there.
func (w *Waits) WorkersGone() (since time.Time, gone bool, err error) {
	if !w.cfg.WorkersApart {
		return time.Time{}, false, nil
	}
	if w.workers == nil {
		since, gone, err := ledger.WorkersGone(w.r)
		if err != nil {
			return time.Time{}, false, fmt.Errorf("looking for workers: %w", err)
		}
		w.workers = &workers{gone: gone, since: since}
	}
	return w.workers.since, w.workers.gone, nil
}

// estimateWait is none where the wait is likely to last until somebody gives up, or until
// somebody starts a worker.
func (w *Waits) estimateWait(poolID, id string, until time.Time) (*wait.Estimate, error) {
	if _, gone, err := w.WorkersGone(); gone || err != nil {
		return nil, err
	}
	o, err := w.poolOutlook(poolID)
	if err != nil {
		return nil, err
	}
	if e, waits := o.Wait(id, until); waits {
		return &e, nil
	}
	return nil, nil
}
