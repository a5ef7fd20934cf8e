package verbs_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// rows is everything that a plan may change, by id.
type rows struct {
	Reservations []reservation.Reservation
	Allocations  []allocation.Allocation
	Nodes        []node.Node
	Pool         ledger.Pool
	Events       int
}

func (w *world) readRows() rows {
	w.Helper()
	var all rows
	w.read(func(r ledger.Reader) error {
		var err error
		everything, page := ledger.Scope{All: true}, ledger.Page{Limit: 500}
		all.Reservations, err = r.Reservations(everything, ledger.BookingFilter{}, page)
		require.NoError(w, err)
		all.Allocations, err = r.Allocations(everything, ledger.BookingFilter{}, page)
		require.NoError(w, err)
		all.Nodes, err = r.Nodes(ledger.NodeFilter{}, page)
		require.NoError(w, err)
		all.Pool, err = r.Pool(w.pool.ID)
		require.NoError(w, err)
		events, err := r.Events(everything, ledger.EventFilter{}, 500)
		all.Events = len(events)
		return err
	})
	return all
}

// effectBetween is the effect that turns one set of rows into another, found without
// the code that notes effects.
func effectBetween(before, after rows) ledger.Effect {
	var e ledger.Effect
	e.Reservations = changedPairs(before.Reservations, after.Reservations,
		func(r reservation.Reservation) (string, int) { return r.ID, r.Version })
	e.Allocations = changedPairs(before.Allocations, after.Allocations,
		func(a allocation.Allocation) (string, int) { return a.ID, a.Version })
	e.Nodes = changedPairs(before.Nodes, after.Nodes, func(n node.Node) (string, int) { return n.ID, n.Version })
	if before.Pool.Version != after.Pool.Version {
		e.Pools = append(e.Pools, ledger.Pair[ledger.Pool]{Before: &before.Pool, After: after.Pool})
	}
	return e
}

func changedPairs[T any](before, after []T, head func(T) (string, int)) []ledger.Pair[T] {
	var list []ledger.Pair[T]
	for _, now := range after {
		id, version := head(now)
		i := slices.IndexFunc(before, func(x T) bool { known, _ := head(x); return known == id })
		if i < 0 {
			list = append(list, ledger.Pair[T]{After: now})
		} else if _, was := head(before[i]); was != version {
			list = append(list, ledger.Pair[T]{Before: &before[i], After: now})
		}
	}
	return list
}

func answerWith(v any, err error) (int, []byte, error) {
	if err != nil {
		return 0, nil, err
	}
	text, err := json.Marshal(v)
	return 200, text, err
}

// drawOperation draws a request of the actor's.
func (w *world) drawOperation(t *rapid.T, by ledger.Actor) verbs.Operation {
	now, live := w.clock.Now(), w.readRows()
	gpus := rapid.IntRange(1, 6).Draw(t, "gpus")
	start := now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "start")) * time.Hour)
	window := w.windowAfter(start.Sub(now), start.Sub(now)+time.Duration(rapid.IntRange(1, 3).Draw(t,
		"hours"))*time.Hour)
	queue := rapid.Bool().Draw(t, "queue")
	pick := rapid.IntRange(0, 4).Draw(t, "verb")
	switch {
	case pick == 0:
		return func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
			return answerWith(l.Allocate(ctx, by, ledger.AllocateRequest{Pool: "lab", GPUs: gpus, Lease: time.Hour}))
		}
	case pick == 1 && len(live.Allocations) > 0:
		id := rapid.SampledFrom(live.Allocations).Draw(t, "allocation").ID
		return func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
			return answerWith(l.Release(ctx, by, id))
		}
	case pick == 2 && len(live.Reservations) > 0:
		id := rapid.SampledFrom(live.Reservations).Draw(t, "reservation").ID
		return func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
			return answerWith(l.Claim(ctx, by, id, time.Hour, ""))
		}
	case pick == 3 && len(live.Reservations) > 0:
		id := rapid.SampledFrom(live.Reservations).Draw(t, "reservation").ID
		return func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
			return answerWith(l.CancelReservation(ctx, by, id))
		}
	default:
		return func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
			return answerWith(l.Reserve(ctx, by, ledger.ReserveRequest{Pool: "lab", GPUs: gpus, Window: window,
				Queue: queue}))
		}
	}
}

func (w *world) makePlan(by ledger.Actor, op verbs.Operation) (ledger.Preview, error) {
	return w.ledger.MakePlan(w.Context(), by, ledger.Preview{Kind: "drawn", Request: []byte("{}")}, op,
		func(ledger.Effect, []byte) ([]byte, error) { return []byte("{}"), nil })
}

// A plan changes nothing; it fails exactly when the request would; and applied,
// it does what it showed, or nothing.
func TestAPlanDoesWhatItShows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		if rapid.Bool().Draw(r, "a warm node") {
			w.warmNodes(1)
		}
		ours, theirs := w.newPerson("ours"), w.newPerson("theirs")
		for range rapid.IntRange(1, 3).Draw(r, "steps") {
			by := ours
			if rapid.IntRange(0, 3).Draw(r, "as an agent") == 0 {
				by = agentBeside(ours, "forecaster")
			}
			w.planOne(r, by, theirs)
		}
	})
}

func (w *world) planOne(r *rapid.T, by, other ledger.Actor) {
	before := w.readRows()
	op := w.drawOperation(r, by)
	p, failed := w.makePlan(by, op)
	require.Equal(w, before, w.readRows(), "a plan changed something")
	if failed != nil {
		_, _, err := op(w.Context(), w.ledger)
		require.Error(w, err)
		if !errors.Is(failed, ledger.ErrNotFound) ||
			!errors.Is(err, ledger.ErrNotFound) { // who looked for it may have been named
			require.Equal(w, failed.Error(), err.Error(), "the plan failed in another way than the request")
		}
		return
	}
	if rapid.Bool().Draw(r, "somebody acts meanwhile") {
		_, _, _ = w.drawOperation(r, other)(w.Context(), w.ledger) // whether it succeeds is theirs to know
	}
	before = w.readRows()
	done, err := w.ledger.ApplyPlan(w.Context(), by, p.ID, op)
	after := w.readRows()
	if err != nil {
		var stale *ledger.PlanStaleError
		require.ErrorAs(w, err, &stale)
		require.True(w, stale.Err != nil || len(stale.Changes) > 0, "it does not say what is otherwise")
		for _, line := range stale.Changes {
			require.NotContains(w, line, other.OrganizationID)
		}
		require.Equal(w, before, after, "a stale plan changed something")
		return
	}
	require.Equal(w, p.Fingerprint, effectBetween(before, after).Fingerprint(), "it did something else than it showed")
	again, err := w.ledger.ApplyPlan(w.Context(), by, p.ID, op)
	require.NoError(w, err)
	require.Equal(w, done, again)
	require.Equal(w, after, w.readRows(), "applied twice, it changed something twice")
}

// Of many that apply the same plan at once one does it, and all get its answer.
func TestAPlanIsAppliedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := w.newPerson("acme")
	op := func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
		return answerWith(l.Allocate(ctx, by, ledger.AllocateRequest{Pool: "lab", GPUs: 8}))
	}
	p, err := w.makePlan(by, op)
	require.NoError(t, err)
	var all sync.WaitGroup
	answers, failures := make([]ledger.Preview, 8), make([]error, 8)
	for i := range answers {
		all.Go(func() { answers[i], failures[i] = w.ledger.ApplyPlan(w.Context(), by, p.ID, op) })
	}
	all.Wait()
	for i, a := range answers {
		require.NoError(t, failures[i])
		require.Equal(t, answers[0], a)
	}
	require.Len(t, w.readRows().Allocations, 1)
}

// A wait that turned into none is what was shown; one that came instead of none
// is not.
func TestAPlanMayBeFulfilledSooner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := w.newPerson("acme")
	op := func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
		return answerWith(l.Allocate(ctx, by, ledger.AllocateRequest{Pool: "lab", GPUs: 2}))
	}
	effect, _, err := w.ledger.DryRun(w.Context(), by, op)
	require.NoError(t, err)
	require.NotNil(t, effect.Wait)
	require.Equal(t, allocation.Pending, effect.Allocations[0].After.State())
	cold, err := w.makePlan(by, op)
	require.NoError(t, err)
	held := w.mustAllocate(by, 8)
	w.pass(boot - time.Minute)
	_, err = w.ledger.ApplyPlan(w.Context(), by, cold.ID, op)
	require.ErrorAs(t, err, new(*ledger.PlanStaleError), "the place is taken")
	_, err = w.ledger.Release(w.Context(), by, held.ID)
	require.NoError(t, err)
	w.pass(time.Minute - time.Second)
	_, err = w.ledger.ApplyPlan(w.Context(), by, cold.ID, op)
	require.NoError(t, err)
	warm, err := w.makePlan(by, op)
	require.NoError(t, err)
	w.pass(5 * time.Minute)
	_, err = w.ledger.ApplyPlan(w.Context(), by, warm.ID, op)
	require.ErrorIs(t, err, ledger.ErrPlanExpired)
}

// A plan that would do something else says what: in which place, at which price, in
// which state, and who gives way. What else the organization books does not matter.
func TestAStalePlanSaysWhatIsOtherwise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	window := w.windowAfter(2*time.Hour, 3*time.Hour)
	op := func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
		return answerWith(l.Reserve(ctx, ann, ledger.ReserveRequest{Pool: "lab", GPUs: 8, Window: window, Queue: true}))
	}
	p, err := w.makePlan(ann, op)
	require.NoError(t, err)
	w.mustReserve(ann, 2, w.windowAfter(5*time.Hour, 6*time.Hour)) // only a counter changes
	w.mustReserve(bob, 1, w.windowAfter(9*time.Hour, 10*time.Hour))
	first := w.mustReserve(bob, 2, window)
	_, err = w.ledger.ApplyPlan(w.Context(), ann, p.ID, op)
	var stale *ledger.PlanStaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t,
		[]string{"the new reservation has state waitlisted instead of booked and has places [] instead of [0 1 2 3]"},
		stale.Changes)
	require.Contains(t, err.Error(), "now the new reservation has state waitlisted")
	_, err = w.ledger.CancelReservation(w.Context(), bob, first.ID)
	require.NoError(t, err)

	speculative, err := w.ledger.Reserve(w.Context(), agentBeside(bob, "forecaster"),
		ledger.ReserveRequest{Pool: "lab", GPUs: 2, Window: window})
	require.NoError(t, err)
	_, err = w.ledger.ApplyPlan(w.Context(), ann, p.ID, op)
	require.ErrorAs(t, err, &stale)
	require.Equal(t, []string{"the outcome for 1 booking of others differs"}, stale.Changes,
		"whose they are is not told")
	_, err = w.ledger.CancelReservation(w.Context(), bob, speculative.ID)
	require.NoError(t, err)
	_, err = w.ledger.ApplyPlan(w.Context(), ann, p.ID, op)
	require.NoError(t, err, "the rest does not matter")
}
