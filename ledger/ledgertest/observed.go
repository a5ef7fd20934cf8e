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
	running.RequestedAt = day.Add(-time.Minute) // it waited for a boot
	over := releasedAllocation(w, activeAllocation(w, "alc_2", "org_1", n, day, 1, 1), day.Add(time.Hour))
	over.RequestedAt = over.ActiveAt
	over.Work = allocation.Work{ID: "18", QueuedAt: over.ActiveAt.Add(-time.Hour), WaitedFor: allocation.WaitedLimits}
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

	starts := func(pool string, to time.Time) ledger.WorkStarts {
		return readValue(w, func(r ledger.Reader) (ledger.WorkStarts, error) {
			return r.WorkStarts(ledger.Scope{All: true}, pool, running.ActiveAt, to)
		})
	}
	after := running.ActiveAt.Add(time.Microsecond)
	require.Equal(w, ledger.WorkStarts{Starts: 2, ZeroWaits: 1, Waits: []ledger.WorkWaits{
		{Reason: allocation.WaitedBoot, Starts: 1, Total: running.ActiveAt.Sub(day.Add(-time.Minute))},
		{Reason: allocation.WaitedLimits, Starts: 1, Total: time.Hour}}}, starts("pol_1", after))
	require.Equal(w, starts("pol_1", after), starts("", after))
	require.Zero(w, starts("pol_2", after))
	require.Zero(w, starts("pol_1", running.ActiveAt), "the period has ended")

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

func fullWatched() ledger.Watched {
	return ledger.Watched{Provisioner: "sim", Mark: "17", At: day, BlindSince: day.Add(time.Hour),
		KeepWithin: time.Minute,
		Waiting:    []ledger.WaitingWork{{PoolID: "pol_3", Reason: "priority", Count: 3, IDs: []string{"17", "18"}}},
		Rooms: []ledger.Room{{PoolID: "pol_3", At: day.Add(time.Minute), Idle: 2,
			Shared: []ledger.SharedNodes{{Free: 1, Nodes: 3}, {Free: 6, Nodes: 1}}}}}
}
