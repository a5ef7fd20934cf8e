package verbs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// Without a worker nothing is promised: what waits, and the pool, say so and since when,
// until one is there.
func TestNothingIsPromisedWithoutAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ledger = verbs.New(w.store, &w.ids, ledger.Config{WorkersApart: true})
	ann := w.newPerson("ann")
	sign := ledger.Worker{ID: "one", Host: "gpu-1"}
	require.NoError(t, w.ledger.NoteWorker(t.Context(), sign, time.Minute))
	seen := w.clock.Now()
	allocate := func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
		_, err := l.Allocate(ctx, ann, ledger.AllocateRequest{Pool: "lab", GPUs: 2})
		return 201, nil, err
	}
	a, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 2})
	require.NoError(t, err)
	e, err := w.ledger.ExplainAllocation(t.Context(), ann, a.ID)
	require.NoError(t, err)
	require.NotNil(t, e.Wait, "a worker is there")

	w.clock.Set(seen.Add(2 * time.Minute))
	e, err = w.ledger.ExplainAllocation(t.Context(), ann, a.ID)
	require.NoError(t, err)
	require.Nil(t, e.Wait)
	require.Empty(t, e.Next)
	require.Equal(t, []ledger.Blocker{{Code: ledger.CodeNoWorker, Message: "no worker has been seen since " +
		ledger.FormatTime(seen) + ": nothing is started, made ready, cleaned or removed before one is there; " +
		"ask an operator"}},
		e.Blockers)
	e, err = w.ledger.ExplainRequest(t.Context(), ann, allocate)
	require.NoError(t, err)
	require.Equal(t, "waits", e.State)
	require.Nil(t, e.Wait)
	require.Equal(t, ledger.CodeNoWorker, e.Blockers[0].Code)
	e, err = w.ledger.ExplainPool(t.Context(), operator, "lab")
	require.NoError(t, err)
	require.Equal(t, "forewarm worker", e.Blockers[0].Fix)
	require.Equal(t, []string{"the last one ran on gpu-1"}, e.Blockers[0].Evidence)

	require.NoError(t, w.ledger.NoteWorker(t.Context(), sign, time.Minute))
	e, err = w.ledger.ExplainPool(t.Context(), operator, "lab")
	require.NoError(t, err)
	require.Empty(t, e.Blockers)
}

// Where the worker is a part of the process, nobody looks for others.
func TestAWorkerInTheProcessIsNotMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, err := w.ledger.ExplainPool(t.Context(), operator, "lab")
	require.NoError(t, err)
	require.Empty(t, e.Blockers)
}

// A job says that no worker is there to start it, while it waits for GPUs and while it waits for its nodes, and of
// neither anything is predicted.
func TestAJobTellsThatNoWorkerIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ledger = verbs.New(w.store, &w.ids, ledger.Config{WorkersApart: true})
	ann := w.newSubmitter("ann")
	require.NoError(t, w.ledger.NoteWorker(t.Context(), ledger.Worker{ID: "one", Host: "gpu-1"}, time.Minute))
	seen := w.clock.Now()
	j := w.submit(ann, jobOf(1, nil))
	explain := func(actor ledger.Actor) ledger.Explanation {
		e, err := w.ledger.ExplainJob(t.Context(), actor, j.ID)
		require.NoError(t, err)
		return e
	}
	require.NotContains(t, fmt.Sprint(explain(ann).Blockers), ledger.CodeNoWorker)

	w.clock.Set(seen.Add(2 * time.Minute))
	missing := "no worker has been seen since " + ledger.FormatTime(seen) +
		": nothing is started, made ready, cleaned or removed before one is there"
	e := explain(ann)
	require.Equal(t, "pending", e.State)
	require.Equal(t, ledger.Blocker{Code: ledger.CodeNoWorker, Message: missing + "; ask an operator"}, e.Blockers[0])
	require.Empty(t, e.Next)

	require.NoError(t, w.ledger.ScheduleJobs(t.Context(), w.pool.ID))
	e = explain(operator)
	require.Equal(t, "scheduled", e.State)
	require.Equal(t, ledger.Blocker{Code: ledger.CodeNoWorker, Message: missing, Fix: "forewarm worker",
		Evidence: []string{"the last one ran on gpu-1"}}, e.Blockers[0])
}
