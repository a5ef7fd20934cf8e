package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/ledger"
)

// addPool makes another pool of h100, as the change says.
func (w *world) addPool(name string, price money.MicroUSD, change func(*capacity.Pool)) ledger.Pool {
	w.Helper()
	p := w.pool.Pool
	p.ID, p.Name, p.Price = "", name, price
	if change != nil {
		change(&p)
	}
	made, err := w.ledger.CreatePool(w.Context(), operator, p, learned.BootTimes{Prior50: boot, Prior95: boot})
	require.NoError(w, err)
	return made
}

// Without a pool's name the cheapest that can serve is taken, and what is said of
// it names those that were passed over.
func TestTheCheapestThatCanServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.addPool("dear", 3*money.USD, func(p *capacity.Pool) { p.Provisioner = "old" })
	cheap := w.addPool("cheap", money.USD, func(p *capacity.Pool) { p.MaxNodes = 1 })
	window := w.windowAfter(time.Hour, 2*time.Hour)
	var order []string
	for range 3 {
		r, err := w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Model: "h100", GPUs: 2, Window: window})
		require.NoError(t, err)
		order = append(order, r.PoolID)
	}
	require.Equal(t, []string{cheap.ID, w.pool.ID, w.pool.ID}, order)
	booked := w.readEvents("reservation.booked")
	require.NotContains(t, booked[0].Message, "not in")
	require.Contains(t, booked[1].Message, "; not in cheap: ")

	_, err := w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Model: "h100", GPUs: 10, Window: window})
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "cheap", refused.Pool)
	require.Len(t, refused.Others, 2)
	require.Equal(t, []string{"lab", "dear"}, []string{refused.Others[0].Pool, refused.Others[1].Pool})

	_, err = w.ledger.BeginRecovery(t.Context(), operator, "old", "to see")
	require.NoError(t, err)
	a, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Model: "h100", GPUs: 8,
		Lease: 10 * time.Minute})
	require.NoError(t, err)
	require.Equal(t, w.pool.ID, a.PoolID, "the cheapest is too small, the dear one recovers")
	_, err = w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Model: "h100", GPUs: 8,
		Lease: 10 * time.Minute})
	require.ErrorAs(t, err, &refused, "a pool that recovers hides no refusal")
}

// A dearer pool where GPUs stand ready comes before a cheap one that must boot,
// and a ready one that others use up does not.
func TestReadyGPUsComeFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.warmNodes(1)
	cheap := w.addPool("cheap", money.USD, nil)
	ask := ledger.AllocateRequest{Model: "h100", GPUs: 2, Lease: time.Hour}
	a, err := w.ledger.Allocate(t.Context(), ann, ask)
	require.NoError(t, err)
	require.Equal(t, w.pool.ID, a.PoolID)
	require.Equal(t, allocation.Active, a.State())
	b, err := w.ledger.Allocate(t.Context(), ann, ask)
	require.NoError(t, err)
	require.Equal(t, cheap.ID, b.PoolID)
}

func TestNeedsChooseThePool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	large := w.addPool("large", 9*money.USD, func(p *capacity.Pool) {
		p.Model, p.MemoryMiB, p.NodeMemoryMiB, p.Region = "h200", 141<<10, 2<<20, "eu-1"
	})
	for name, needs := range map[string]capacity.Needs{
		"region": {Region: "eu-1"}, "memory": {MemoryMiB: 100 << 10}, "node memory": {NodeMemoryMiB: 1},
		"all": {Region: "eu-1", MemoryMiB: 1, NodeMemoryMiB: 1},
	} {
		a, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Needs: needs, GPUs: 1, Lease: time.Minute})
		require.NoError(t, err, name)
		require.Equal(t, large.ID, a.PoolID, name)
	}
	for _, tc := range []struct {
		pool, model string
		needs       capacity.Needs
		field       string
	}{
		{"lab", "h200", capacity.Needs{}, "model"},
		{"lab", "", capacity.Needs{Region: "eu-1"}, "region"},
		{"lab", "", capacity.Needs{MemoryMiB: 100 << 10}, "min_gpu_memory_mib"},
		{"lab", "", capacity.Needs{NodeMemoryMiB: 1}, "min_node_memory_mib"},
		{"large", "", capacity.Needs{NodeMemoryMiB: 3 << 20}, "min_node_memory_mib"},
		{"", "h100", capacity.Needs{Region: "eu-1"}, "region"},
		{"", "", capacity.Needs{MemoryMiB: 1 << 20}, "min_gpu_memory_mib"},
		{"", "h100", capacity.Needs{NodeMemoryMiB: 1}, "min_node_memory_mib"},
		{"", "b200", capacity.Needs{Region: "eu-1"}, "model"},
		{"", "", capacity.Needs{}, "pool"},
	} {
		_, err := w.ledger.Reserve(t.Context(), ann,
			ledger.ReserveRequest{Pool: tc.pool, Model: tc.model, Needs: tc.needs, GPUs: 1,
				Window: w.windowAfter(0, time.Hour)})
		var wrong *ledger.InvalidError
		require.ErrorAs(t, err, &wrong, "%+v", tc)
		require.Equal(t, tc.field, wrong.Field, "%+v", tc)
	}
}

// Who names nothing is served by the only pool there is; where there are several, the refusal names them.
func TestTheOnlyPoolNeedNotBeNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	a, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{GPUs: 1})
	require.NoError(t, err)
	require.Equal(t, w.pool.ID, a.PoolID)
	r, err := w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{GPUs: 1,
		Window: w.windowAfter(time.Hour, 2*time.Hour)})
	require.NoError(t, err)
	require.Equal(t, w.pool.ID, r.PoolID)
	w.addPool("other", money.USD, nil)
	_, err = w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{GPUs: 1})
	var invalid *ledger.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "pool", invalid.Field)
	require.Contains(t, invalid.Fix, "lab")
	require.Contains(t, invalid.Fix, "other")
}
