package verbs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// shrinkPool makes the pool smaller, or says what stands in the way.
func (w *world) shrinkPool(nodes int, force bool) error {
	w.Helper()
	var p ledger.Pool
	w.read(func(r ledger.Reader) (err error) {
		p, err = r.Pool(w.pool.ID)
		return err
	})
	update := w.ledger.UpdatePool
	if force {
		update = w.ledger.ForcePool
	}
	_, err := update(w.Context(), operator, p.ID, p.DefinitionVersion, func(p *capacity.Pool) { p.MaxNodes = nodes })
	return err
}

// The bounds of a pool are told with what they count.
func TestBoundsOfAPoolHaveUnits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for rule, change := range map[string]func(*capacity.Pool){
		"cleaning_seconds must be between 0 s and 31622400 s (366 days)": func(p *capacity.Pool) {
			p.Timers.Cleaning = -1
		},
		"max_lease_seconds must be between 1 s and 31622400 s (366 days)": func(p *capacity.Pool) {
			p.Timers.MaxLease = 0
		},
		"gpu_memory_mib must be between 0 and 16777216 MiB": func(p *capacity.Pool) { p.MemoryMiB = -1 },
		"max_nodes must be between 1 and 100000":            func(p *capacity.Pool) { p.MaxNodes = 100_001 },
	} {
		_, err := w.ledger.UpdatePool(t.Context(), operator, "lab", 1, change)
		require.ErrorContains(t, err, rule)
	}
}

// A pool that is made smaller than its promises says whom that hurts, and is not.
// Forced, those are flagged at once, and explained by the same fact.
func TestAPoolIsNotMadeSmallerThanItsPromises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	fits := w.mustReserve(ann, 2, w.windowAfter(2*time.Hour, 3*time.Hour)) // slot 0
	lost := w.mustReserve(ann, 6, w.windowAfter(5*time.Hour, 6*time.Hour))
	var risk *ledger.PromisesAtRiskError
	require.ErrorAs(t, w.shrinkPool(2, false), &risk)
	require.Equal(t, "lab", risk.Pool)
	require.Len(t, risk.Promises, 1)
	require.Equal(t, lost.ID, risk.Promises[0].ID)
	require.Equal(t, "pool lab would have 2 nodes of 2 GPUs, and no place for it", risk.Promises[0].Lost[0].Message)
	w.doDueWork()
	require.False(t, w.readReservation(lost.ID).Degraded, "nothing was changed")

	require.NoError(t, w.shrinkPool(2, true))
	require.True(t, w.readReservation(lost.ID).Degraded)
	require.NoError(t, w.shrinkPool(1, false), "what is lost already is not lost again")
	w.doDueWork()
	e, err := w.ledger.ExplainReservation(t.Context(), ann, lost.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "lab was made smaller, and has no place for it now")
	require.Equal(t, plan.LacksSlot, e.Blockers[0].Code)
	require.Nil(t, e.Wait)
	e, err = w.ledger.ExplainReservation(t.Context(), ann, fits.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "has its place")
	require.Len(t, w.readEvents("reservation.degraded"), 1)

	require.NoError(t, w.shrinkPool(4, false))
	w.doDueWork()
	require.False(t, w.readReservation(lost.ID).Degraded)
	e, err = w.ledger.ExplainReservation(t.Context(), ann, lost.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "has its place")
	require.Empty(t, e.Blockers)
}

// A node that an operator keeps takes a slot from the plan that is explained as it
// does from the plan that is carried out.
func TestAKeptNodeIsNoPlaceInAnExplanation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.warmNodes(1)
	n := w.readNodes()[0]
	_, err := w.ledger.QuarantineNode(t.Context(), operator, n.ID, "")
	require.NoError(t, err)
	lost := w.mustReserve(ann, 2, w.windowAfter(5*time.Hour, 6*time.Hour))
	require.NoError(t, w.shrinkPool(1, true)) // the one slot left is the kept node's
	w.doDueWork()
	require.True(t, w.readReservation(lost.ID).Degraded)
	e, err := w.ledger.ExplainReservation(t.Context(), ann, lost.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "has no place for it now")
}

// Free and busy times are those that admission sees: a slot whose node an operator
// keeps is free to nobody.
func TestAKeptNodeIsNotFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.warmNodes(1)
	window := w.windowAfter(5*time.Hour, 6*time.Hour)
	free := func() int {
		f, err := w.ledger.FreeBusy(t.Context(), "lab", window.Start, window.End, 0)
		require.NoError(t, err)
		require.Len(t, f.Steps, 1)
		return f.Steps[0].FreeGPUs
	}
	require.Equal(t, 8, free())
	_, err := w.ledger.QuarantineNode(t.Context(), operator, w.readNodes()[0].ID, "")
	require.NoError(t, err)
	require.Equal(t, 6, free())
	w.mustReserve(ann, free(), window)
	require.Zero(t, free())
	_, err = w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: window})
	require.Contains(t, itemErrors(t, err), admission.CapacityExhausted)
}

// What runs on a node beyond a smaller pool runs on to its end. Nothing else is
// promised there, however ready it is, and the node goes when it is empty.
func TestANodeBeyondASmallerPoolIsPromisedToNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	short, long := w.mustAllocate(ann, 2), w.mustAllocate(ann, 2)
	w.pass(boot)
	fits := w.mustReserve(ann, 2, w.windowAfter(3*time.Hour, 4*time.Hour))
	lost := w.mustReserve(ann, 2, w.windowAfter(3*time.Hour, 4*time.Hour))
	_, err := w.ledger.Release(t.Context(), ann, short.ID)
	require.NoError(t, err)
	require.Equal(t, []int{1}, w.readAllocation(long.ID).Slots)
	require.Equal(t, []int{1}, w.readReservation(lost.ID).Slots)
	var risk *ledger.PromisesAtRiskError
	require.ErrorAs(t, w.shrinkPool(1, false), &risk)
	require.Len(t, risk.Promises, 1, "what runs stays where it is")
	require.Equal(t, lost.ID, risk.Promises[0].ID)

	require.NoError(t, w.shrinkPool(1, true))
	require.True(t, w.readReservation(lost.ID).Degraded)
	w.doDueWork()
	require.Equal(t, allocation.Active, w.readAllocation(long.ID).State())
	n := w.readNodes(node.Draining)[0]
	require.Equal(t, 1, n.Slot)
	e, err := w.ledger.ExplainNode(t.Context(), operator, n.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "removed when it is empty; lab was made smaller, and no longer has that slot")
	require.Len(t, e.Next, 1, "nothing is booked on it")
	e, err = w.ledger.ExplainReservation(t.Context(), ann, lost.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "lab was made smaller, and has no place for it now")
	w.pass(2 * time.Hour) // the lease is over
	require.Empty(t, w.readNodes(node.Draining, node.Ready, node.Deprovisioning))

	w.pass(50 * time.Minute)
	require.Equal(t, reservation.Booked, w.readReservation(lost.ID).State(),
		"nothing is warmed on a slot that is not there")
	_, err = w.ledger.CancelReservation(t.Context(), ann, fits.ID)
	require.NoError(t, err)
	w.pass(15 * time.Minute)
	require.Equal(t, []int{0}, w.readReservation(lost.ID).Slots)
	require.False(t, w.readReservation(lost.ID).Degraded, "there is a place again")
}

// A reservation that is ready on a node beyond a smaller pool is named, too: it must
// wait for another node. Forced, it moves into the pool, and is ready there.
func TestWhatIsReadyBeyondASmallerPoolMovesIntoIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	first, r := w.mustAllocate(ann, 6), w.mustReserve(ann, 2, w.windowAfter(time.Minute, 4*time.Hour))
	w.pass(boot)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	require.Equal(t, []int{3}, w.readReservation(r.ID).Slots)
	_, err := w.ledger.Release(t.Context(), ann, first.ID)
	require.NoError(t, err)
	var risk *ledger.PromisesAtRiskError
	require.ErrorAs(t, w.shrinkPool(1, false), &risk)
	require.Equal(t, "pool lab would have 1 node of 2 GPUs, and no ready nodes for it",
		risk.Promises[0].Lost[0].Message)
	require.NoError(t, w.shrinkPool(1, true))
	w.doDueWork()
	require.Equal(t, []int{0}, w.readReservation(r.ID).Slots)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State(), "slot 0 has a ready node")
	_, err = w.ledger.Claim(t.Context(), ann, r.ID, 0, "")
	require.NoError(t, err)
	w.pass(time.Minute)
	require.Len(t, w.readNodes(node.Ready), 1)
}

// Whatever is booked and whatever runs: a pool that is made smaller without force hurts nobody, and
// with force exactly those who were named.
func TestWhoIsHurtByASmallerPoolIsNamed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		ann := w.newPerson("ann")
		for range rapid.IntRange(0, 4).Draw(r, "nodes in use") {
			w.mustAllocate(ann, 2)
		}
		w.pass(boot)
		for range rapid.IntRange(1, 6).Draw(r, "reservations") {
			from := time.Duration(rapid.IntRange(1, 12).Draw(r, "from")) * time.Hour
			_, err := w.ledger.Reserve(t.Context(), ann,
				ledger.ReserveRequest{Pool: "lab", GPUs: rapid.IntRange(1, 8).Draw(r, "gpus"),
					Window: w.windowAfter(from, from+time.Duration(rapid.IntRange(1, 4).Draw(r, "hours"))*time.Hour)})
			var refused *ledger.RefusedError
			if err != nil {
				require.ErrorAs(r, err, &refused)
			}
		}
		w.doDueWork()
		size, named := rapid.IntRange(1, 3).Draw(r, "nodes"), []string{}
		if err := w.shrinkPool(size, false); err != nil {
			var risk *ledger.PromisesAtRiskError
			require.ErrorAs(r, err, &risk)
			for _, p := range risk.Promises {
				named = append(named, p.ID)
			}
			require.NoError(r, w.shrinkPool(size, true))
		}
		w.doDueWork()
		var hurt []string
		for _, x := range w.liveOf(ann.KeyID) {
			if x.Degraded && x.State() == reservation.Booked {
				hurt = append(hurt, x.ID)
			}
		}
		slices.Sort(hurt)
		slices.Sort(named)
		require.ElementsMatch(r, named, hurt)
	})
}
