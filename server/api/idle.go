package api

import (
	"fmt"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/ledger"
)

// showIdle says of some allocations, in the order in which they are shown, since when their
// GPUs have done nothing, what that costs, and what becomes of them.
func showIdle(r ledger.Reader, all []allocation.Allocation, shown []contract.Allocation) error {
	idle, err := ledger.IdleAllocations(r, all)
	if err != nil {
		return err
	}
	for i, a := range all {
		found, is := idle[a.ID]
		if !is || !ledger.IsTold(found, a) {
			continue
		}
		state, err := r.LiveState(a.PoolID)
		if err != nil {
			return fmt.Errorf("reading the pool of allocation %s: %w", a.ID, err)
		}
		encodeIdle(a, found, state.Pool, &shown[i])
	}
	return nil
}

func encodeIdle(a allocation.Allocation, found plan.Idleness, pool ledger.Pool, out *contract.Allocation) {
	cost := formatMoney(admission.Cost(pool.Pool, a.Shape, found.Length()))
	out.IdleSince, out.IdleCost = found.Since.UTC(), &cost
	if found.Warned(a.IdleWarnedAt) {
		out.IdleWarnedAt = a.IdleWarnedAt.UTC()
		out.IdleReclaimAt = found.ReclaimAt(pool.Timers, a.IdleWarnedAt).UTC()
	}
}

// showUse says of some allocations that are over, in the order in which they are shown, until when they were used.
func showUse(r ledger.Reader, all []allocation.Allocation, shown []contract.Allocation) error {
	until, err := ledger.UsedUntil(r, all)
	for i, a := range all {
		if used, is := until[a.ID]; is {
			shown[i].UsedUntil = used.UTC()
		}
	}
	return err
}
