package proof_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// chance is where a history gets its choices from.
type chance interface {
	// IntN returns a number from 0 to n-1; what says of what, for people.
	IntN(n int, what string) int
}

// seeded takes a history's choices from a seed.
type seeded struct{ *rand.Rand }

func (s seeded) IntN(n int, _ string) int { return s.Rand.IntN(n) }

// acts are what can happen in a history, each as often as it is listed.
var acts = []struct {
	name string
	do   func(*world, chance) error
}{
	{"reserve", (*world).reserveGPUs},
	{"reserve", (*world).reserveGPUs},
	{"reserve", (*world).reserveGPUs},
	{"allocate", (*world).allocateGPUs},
	{"allocate", (*world).allocateGPUs},
	{"claim", (*world).claimPromised},
	{"attend", (*world).claimInWindow},
	{"extend", (*world).extendHeld},
	{"release", (*world).releaseHeld},
	{"cancel", (*world).cancelPromised},
	{"wait", (*world).waitMinutes},
	{"wait", (*world).waitMinutes},
	{"wait", (*world).waitMinutes},
	{"lose", (*world).loseMachine},
}

// takeStep does one thing and returns what came of it, in words.
func (w *world) takeStep(c chance) string {
	w.t.Helper()
	a := acts[c.IntN(len(acts), "act")]
	err := a.do(w, c)
	w.requireExpected(err)
	return fmt.Sprintf("%s: %v", a.name, err)
}

// requireExpected fails for an error that no caller chooses by.
func (w *world) requireExpected(err error) {
	w.t.Helper()
	var (
		refused *ledger.RefusedError
		invalid *ledger.InvalidError
		state   *ledger.StateError
		holder  *ledger.NotHolderError
		watched *ledger.ObservedPoolError
	)
	if err == nil || errors.As(err, &refused) || errors.As(err, &invalid) || errors.As(err, &state) ||
		errors.As(err, &holder) || errors.As(err, &watched) ||
		errors.Is(err, ledger.ErrNotFound) {
		return
	}
	require.NoError(w.t, err)
}

func (w *world) drawActor(c chance) ledger.Actor { return w.actors[c.IntN(len(w.actors), "actor")] }

func halfHours(n int) time.Duration { return time.Duration(n) * 30 * time.Minute }

func (w *world) reserveGPUs(c chance) error {
	by := w.drawActor(c)
	start := w.now.Add(halfHours(c.IntN(16, "start")))
	req := ledger.ReserveRequest{
		Pool: "lab", GPUs: 1 + c.IntN(perNode*slots+1, "gpus"),
		Window: calendar.Interval{Start: start, End: start.Add(halfHours(1 + c.IntN(8, "length")))},
		Queue:  c.IntN(4, "queue") == 0, Probability: float64(c.IntN(4, "probability")) / 4,
	}
	if c.IntN(3, "class") == 0 {
		req.Class = reservation.Speculative
	}
	r, err := w.ledger.Reserve(w.ctx, by, req)
	if err == nil {
		w.promised = append(w.promised, r.ID)
		return nil
	}
	w.takeOffers(err, by, func(o admission.Offer) error {
		try := req
		try.GPUs, try.Window, try.Queue = o.Shape.GPUs(), o.Window, false
		return w.tryVerb(by, func(ctx context.Context, l *verbs.Ledger) error {
			_, err := l.Reserve(ctx, by, try)
			return err
		})
	})
	return err
}

func (w *world) allocateGPUs(c chance) error {
	by := w.drawActor(c)
	req := ledger.AllocateRequest{Pool: "lab", GPUs: 1 + c.IntN(perNode*slots+1, "gpus"),
		Lease: halfHours(1 + c.IntN(8, "lease"))}
	a, err := w.ledger.Allocate(w.ctx, by, req)
	if err == nil {
		w.held = append(w.held, a.ID)
		return nil
	}
	w.takeOffers(err, by, func(o admission.Offer) error {
		gpus, window := o.Shape.GPUs(), o.Window
		if !window.Start.After(w.now) {
			try := req
			try.GPUs, try.Lease = gpus, window.Length()
			return w.tryVerb(by, func(ctx context.Context, l *verbs.Ledger) error {
				_, err := l.Allocate(ctx, by, try)
				return err
			})
		}
		return w.tryVerb(by, func(ctx context.Context, l *verbs.Ledger) error {
			_, err := l.Reserve(ctx, by, ledger.ReserveRequest{Pool: "lab", GPUs: gpus, Window: window})
			return err
		})
	})
	return err
}

// tryVerb tries a verb and keeps nothing of it.
func (w *world) tryVerb(by ledger.Actor, verb func(context.Context, *verbs.Ledger) error) error {
	_, _, err := w.ledger.DryRun(w.ctx, by, func(ctx context.Context,
		l *verbs.Ledger) (int, []byte, error) {
		return 0, nil, verb(ctx, l)
	})
	return err
}

// takeOffers takes each offer of a refusal at once: it must be accepted.
func (w *world) takeOffers(err error, by ledger.Actor, take func(admission.Offer) error) {
	w.t.Helper()
	var refused *ledger.RefusedError
	if !errors.As(err, &refused) {
		return
	}
	for _, o := range refused.Decision.Offers {
		require.NoError(w.t, take(o), "%s was refused (%v) and offered %s from %s to %s at %s",
			by.KeyID, err, o.Shape, o.Window.Start, o.Window.End, w.now)
	}
}

// pickID chooses one of the ids, the late ones more often.
func pickID(c chance, ids []string) (string, bool) {
	if len(ids) == 0 {
		return "", false
	}
	back := min(c.IntN(len(ids), "which"), c.IntN(len(ids), "or"))
	return ids[len(ids)-1-back], true
}

// claimInWindow waits for the window of something promised, and claims it as its holder:
// what is booked has its place.
func (w *world) claimInWindow(c chance) error {
	id, ok := pickID(c, w.promised)
	if !ok {
		return nil
	}
	promise := w.readReservation(id)
	w.passTime(max(0, promise.Window.Start.Sub(w.now)))
	holder := slices.IndexFunc(w.actors,
		func(a ledger.Actor) bool { return a.OrganizationID == promise.OrganizationID })
	a, err := w.ledger.Claim(w.ctx, w.actors[holder], id, 0, "")
	if err == nil {
		w.held = append(w.held, a.ID)
		w.requireCostBound(promise, a)
	}
	var refused *ledger.RefusedError
	if inWindow := w.now.Before(promise.Window.End); inWindow && errors.As(err, &refused) {
		require.False(w.t, refused.Decision.OnlyCapacity(), "%s of %s: %v", id, promise.Window, err)
	}
	return err
}

// claimPromised claims something promised, however early or late and for however long, and
// checks what that can cost.
func (w *world) claimPromised(c chance) error {
	id, ok := pickID(c, w.promised)
	if !ok {
		return nil
	}
	by, lease := w.drawActor(c), halfHours(c.IntN(6, "lease"))
	promise := w.readReservation(id)
	a, err := w.ledger.Claim(w.ctx, by, id, lease, "")
	if err == nil {
		w.held = append(w.held, a.ID)
		w.requireCostBound(promise, a)
		return nil
	}
	w.takeOffers(err, by, func(o admission.Offer) error {
		return w.tryVerb(by, func(ctx context.Context, l *verbs.Ledger) error {
			if o.Reservation == "" {
				_, err := l.Allocate(ctx, by, ledger.AllocateRequest{Pool: "lab", GPUs: o.Shape.GPUs(),
					Lease: o.Window.Length(), Workload: promise.Workload})
				return err
			}
			if o.Window.Start.After(w.now) {
				require.False(w.t, o.Window.Start.After(promise.Window.Start),
					"a claim is offered for after its window began")
				return nil
			}
			_, err := l.Claim(ctx, by, o.Reservation, o.Window.Length(), "")
			return err
		})
	})
	return err
}

// requireCostBound checks that a claim costs, without an extension, what was booked and at
// most the pool's lead more.
func (w *world) requireCostBound(promise reservation.Reservation, a allocation.Allocation) {
	w.t.Helper()
	early := promise.Window
	early.Start = early.Start.Add(-boot - guard)
	require.False(w.t, a.RequestedAt.Before(early.Start), "claimed at %s, booked for %s", a.RequestedAt, promise.Window)
	require.LessOrEqual(w.t, a.Cost, admission.Cost(w.pool.Pool, promise.Shape, early.Length()), "booked for %s",
		promise.Cost)
	require.Equal(w.t, admission.Cost(w.pool.Pool, a.Shape, a.Lease), a.Cost)
}

func (w *world) readReservation(id string) (found reservation.Reservation) {
	w.t.Helper()
	require.NoError(w.t, w.store.Read(w.ctx, func(r ledger.Reader) (err error) {
		found, err = r.Reservation(ledger.Scope{All: true}, id)
		return err
	}))
	return found
}

func (w *world) extendHeld(c chance) error {
	id, ok := pickID(c, w.held)
	if !ok {
		return nil
	}
	_, err := w.ledger.Extend(w.ctx, w.drawActor(c), id, halfHours(1+c.IntN(4, "by")))
	return err
}

func (w *world) releaseHeld(c chance) error {
	id, ok := pickID(c, w.held)
	if !ok {
		return nil
	}
	_, err := w.ledger.Release(w.ctx, w.drawActor(c), id)
	return err
}

func (w *world) cancelPromised(c chance) error {
	id, ok := pickID(c, w.promised)
	if !ok {
		return nil
	}
	_, err := w.ledger.CancelReservation(w.ctx, w.drawActor(c), id)
	return err
}

// waitMinutes lets the planner and the machines do their work.
func (w *world) waitMinutes(c chance) error {
	w.passTime(time.Duration(c.IntN(90, "minutes")) * time.Minute)
	return nil
}

// loseMachine takes a machine away, and has everybody look.
func (w *world) loseMachine(c chance) error {
	var standing []string
	for id := range w.up {
		standing = append(standing, id)
	}
	slices.Sort(standing)
	if id, ok := pickID(c, standing); ok && c.IntN(2, "lose") == 0 {
		delete(w.up, id)
		w.passTime(24 * time.Hour) // until it is verified
	}
	return nil
}
