package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

// Five GPUs on nodes of two are two whole nodes and one GPU of a third, whose
// other GPU is for somebody else.
func TestUnequalShapesShareANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	for _, want := range []string{"2×2+1", "1×2+1"} {
		gpus := map[string]int{"2×2+1": 5, "1×2+1": 3}[want]
		r, err := w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: gpus,
			Window: calendar.Interval{Start: monday.Add(time.Hour), End: monday.Add(2 * time.Hour)}})
		require.NoError(t, err)
		require.Equal(t, want, r.Shape.String())
		a, err := w.ledger.Allocate(t.Context(), ann,
			ledger.AllocateRequest{Pool: "lab", GPUs: gpus, Lease: 30 * time.Minute})
		require.NoError(t, err)
		require.Equal(t, want, a.Shape.String())
	}
	_, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Minute})
	require.ErrorAs(t, err, new(*ledger.RefusedError), "the pool is full to the last GPU")
}

func TestLayoutsThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	for _, tc := range []struct {
		gpus  int
		l     capacity.Layout
		field string
	}{
		{0, capacity.Layout{}, "gpus"},
		{0, capacity.Layout{Nodes: 2}, "gpus"},
		{5, capacity.Layout{Nodes: -1}, "nodes"},
		{5, capacity.Layout{PerNode: -1}, "gpus_per_node"},
		{5, capacity.Layout{Nodes: 4}, "nodes"},
		{5, capacity.Layout{Nodes: 2, PerNode: 4, Even: true}, "spread"},
		{0, capacity.Layout{Nodes: ledger.MaxGPUs, PerNode: 1024}, "gpus"},
	} {
		_, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: tc.gpus, Layout: tc.l})
		var wrong *ledger.InvalidError
		require.ErrorAs(t, err, &wrong, "%d GPUs, %+v", tc.gpus, tc.l)
		require.Equal(t, tc.field, wrong.Field)
	}
	a, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab",
		Layout: capacity.Layout{Nodes: 4, PerNode: 1}})
	require.NoError(t, err)
	require.Equal(t, capacity.Shape{Nodes: 4, PerNode: 1}, a.Shape)
}
