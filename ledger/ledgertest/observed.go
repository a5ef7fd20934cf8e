package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/ledger"
)

// observedWorkIsFound stores work that a cluster placed: it is found by its id, whatever
// became of it, is there once, and costs nobody's budget.
func observedWorkIsFound(w *world) {
	n := saveGround(w)
	running := activeAllocation(w, "alc_1", "org_1", n, day, 1, 0)
	running.Work, running.LeaseUntil = allocation.Work{ID: "17"}, time.Time{}
	over := releasedAllocation(w, activeAllocation(w, "alc_2", "org_1", n, day, 1, 1), day.Add(time.Hour))
	over.Work = allocation.Work{ID: "18"}
	w.mustSave(ledger.Change{Allocations: []allocation.Allocation{running, over}})

	found := readValue(w, func(r ledger.Reader) ([]string, error) {
		many := []string{"17", "18", "19"}
		for i := range 1000 {
			many = append(many, string(rune('a'+i)))
		}
		return r.ObservedWork("pol_1", many)
	})
	require.ElementsMatch(w, []string{"17", "18"}, found)
	require.Empty(w, readValue(w, func(r ledger.Reader) ([]string, error) {
		return r.ObservedWork("pol_2", []string{"17", "18"})
	}), "of another pool")
	c := readValue(w, func(r ledger.Reader) (ledger.Commitments, error) { return r.Commitments("org_1") })
	require.Zero(w, c.All.On(day), "a scheduler of its own has budgets of its own")
	state := readValue(w, func(r ledger.Reader) (ledger.PoolState, error) { return r.PoolState("pol_1") })
	require.Empty(w, state.Spent)

	twice := running
	twice.ID, twice.Version, twice.Devices = "alc_3", 0, nil
	require.ErrorIs(w, w.save(ledger.Change{Allocations: []allocation.Allocation{twice}}), ledger.ErrTaken)
}

func fullWork() allocation.Work {
	return allocation.Work{ID: "4711", QueuedAt: day, WaitedFor: "queue",
		WorkOwner: capacity.WorkOwner{Account: "vision", User: "ann", Namespace: "lab", Queue: "gpu"}}
}

func fullHolders() capacity.Holders {
	return capacity.Holders{Default: "org_1", Rules: []capacity.HolderRule{{Account: "vision", User: "ann",
		Namespace: "lab", Queue: "gpu", OrganizationID: "org_3"}}}
}
