package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/ledger"
)

// sharedPool is of the same machines as the other, whose GPUs two may have at once.
func (w *world) sharedPool() capacity.Pool {
	p := w.pool.Pool
	p.ID, p.Name, p.SharesPerGPU, p.PerNode, p.MemoryMiB = "", "shared", 2, 16, 40_960
	return p
}

func (w *world) allocateShares(shares int) allocation.Allocation {
	w.t.Helper()
	a, err := w.ledger.Allocate(w.t.Context(), w.actor, ledger.AllocateRequest{Pool: "shared", GPUs: shares,
		Lease: time.Hour})
	require.NoError(w.t, err)
	w.driveFor(5 * time.Minute)
	a = w.readAllocation(a.ID)
	require.Equal(w.t, allocation.Active, a.State())
	require.Len(w.t, a.Devices, shares)
	return a
}

// gpusOfShared are the indices of the GPUs of the shared pool's units.
func (w *world) gpusOfShared() (indices []int) {
	w.t.Helper()
	require.NoError(w.t, w.store.Read(w.t.Context(), func(r ledger.Reader) error {
		pools, err := r.Pools(ledger.Page{Limit: 10})
		for _, p := range pools {
			if p.Name != "shared" || err != nil {
				continue
			}
			var state ledger.PoolState
			if state, err = r.LiveState(p.ID); err == nil {
				for _, d := range state.Devices(r.Now()) {
					indices = append(indices, d.Index)
				}
			}
		}
		return err
	}))
	return indices
}

// gpusOf are the GPUs of which an allocation has shares, by how many it has.
func gpusOf(a allocation.Allocation) map[string]int {
	all := map[string]int{}
	for _, d := range a.Devices {
		all[capacity.GPUOf(d.UUID)]++
	}
	return all
}

// A share is on a GPU that nobody else is on, as long as there is one, and never two holders have the same share.
func TestSharesOfGPUsAreHandedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	_, err := w.ledger.CreatePool(t.Context(), w.actor, w.sharedPool(), learned.BootTimes{Prior50: time.Minute,
		Prior95: 2 * time.Minute})
	require.NoError(t, err)
	first, err := w.ledger.Allocate(t.Context(), w.actor, ledger.AllocateRequest{Pool: "shared", GPUs: 1,
		Lease: time.Hour})
	require.NoError(t, err)
	w.doDueWork()
	require.Equal(t, []int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}, w.gpusOfShared(), "of the node on its way")
	second := w.allocateShares(1)
	first = w.readAllocation(first.ID)
	require.Len(t, first.Devices, 1)
	for gpu := range gpusOf(first) {
		require.NotContains(t, gpusOf(second), gpu)
	}
	third := w.allocateShares(8)
	require.Len(t, gpusOf(third), 8, "six GPUs of its own, and two that the others are on")
	rest := w.allocateShares(6)
	for gpu, shares := range gpusOf(rest) {
		require.Equal(t, 1, shares, gpu)
	}
	require.Len(t, w.readNodes(), 1, "sixteen shares are on one node")
	require.Len(t, w.readNodes()[0].Devices, 16)
	require.Equal(t, 40_960, w.readNodes()[0].Devices[0].MemoryMiB)
	for _, a := range []allocation.Allocation{first, second, third, rest} {
		_, err = w.ledger.Release(t.Context(), w.actor, a.ID)
		require.NoError(t, err)
	}
	w.driveFor(10 * time.Minute)
	w.requireOver(1)
}

func TestAPoolOfSharesIsCheckedAgainstItsMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startWorker(parts{})
	w.driveFor(time.Minute)
	for field, change := range map[string]func(*capacity.Pool){
		"gpus_per_node":  func(p *capacity.Pool) { p.PerNode = 8 },
		"gpu_memory_mib": func(p *capacity.Pool) { p.MemoryMiB = 81_920 },
		"shares_per_gpu": func(p *capacity.Pool) { p.SharesPerGPU = 65 },
	} {
		p := w.sharedPool()
		change(&p)
		_, err := w.ledger.CreatePool(t.Context(), w.actor, p, learned.BootTimes{})
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
	odd := w.sharedPool()
	odd.SharesPerGPU, odd.PerNode = 3, 8
	_, err := w.ledger.CreatePool(t.Context(), w.actor, odd, learned.BootTimes{})
	require.ErrorContains(t, err, "multiple of shares_per_gpu (3)")
}
