package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// shrink makes the pool smaller, or says what stands in the way.
func (w *world) shrink(nodes int, force bool) error {
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
	_, err := update(w.Context(), operator, p.ID, p.DefinitionVersion, func(p *gpu.Pool) { p.MaxNodes = nodes })
	return err
}

// A pool that is made smaller than its promises says whom that hurts, and is not.
// Forced, those are flagged at once, and explained by the same fact.
func TestAPoolIsNotMadeSmallerThanItsPromises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("ann")
	fits := w.reserve(ann, 2, w.after(2*time.Hour, 3*time.Hour)) // slot 0
	lost := w.reserve(ann, 6, w.after(5*time.Hour, 6*time.Hour))
	risk := (*ledger.PromisesAtRiskError)(nil)
	require.ErrorAs(t, w.shrink(2, false), &risk)
	require.Equal(t, "lab", risk.Pool)
	require.Len(t, risk.Promises, 1)
	require.Equal(t, lost.ID, risk.Promises[0].ID)
	require.Equal(t, "pool lab would have 2 nodes of 2 GPUs, and no place for it", risk.Promises[0].Lost[0].Message)
	w.work()
	require.False(t, w.reservation(lost.ID).Degraded, "nothing was changed")

	require.NoError(t, w.shrink(2, true))
	require.True(t, w.reservation(lost.ID).Degraded)
	require.NoError(t, w.shrink(1, false), "what is lost already is not lost again")
	w.work()
	e, err := w.ledger.ExplainReservation(t.Context(), ann, lost.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "lab was made smaller, and has no place for it now")
	require.Equal(t, plan.LacksSlot, e.Blockers[0].Code)
	require.Nil(t, e.Wait)
	e, err = w.ledger.ExplainReservation(t.Context(), ann, fits.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "has its place")
	require.Len(t, w.events("reservation.degraded"), 1)

	require.NoError(t, w.shrink(4, false))
	w.work()
	require.False(t, w.reservation(lost.ID).Degraded)
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
	ann := w.person("ann")
	w.warm(1)
	n := w.nodes()[0]
	_, err := w.ledger.QuarantineNode(t.Context(), operator, n.ID)
	require.NoError(t, err)
	lost := w.reserve(ann, 2, w.after(5*time.Hour, 6*time.Hour))
	require.NoError(t, w.shrink(1, true)) // the one slot left is the kept node's
	w.work()
	require.True(t, w.reservation(lost.ID).Degraded)
	e, err := w.ledger.ExplainReservation(t.Context(), ann, lost.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "has no place for it now")
}

// Whatever is booked: a pool that is made smaller without force hurts nobody, and
// with force exactly those who were named.
func TestWhoIsHurtByASmallerPoolIsNamed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		ann := w.person("ann")
		for range rapid.IntRange(1, 6).Draw(r, "reservations") {
			from := time.Duration(rapid.IntRange(1, 12).Draw(r, "from")) * time.Hour
			_, err := w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: rapid.IntRange(1, 8).Draw(r, "gpus"),
				Window: w.after(from, from+time.Duration(rapid.IntRange(1, 4).Draw(r, "hours"))*time.Hour)})
			refused := (*ledger.RefusedError)(nil)
			if err != nil {
				require.ErrorAs(r, err, &refused)
			}
		}
		w.work()
		size, named := rapid.IntRange(1, 3).Draw(r, "nodes"), []string{}
		if err := w.shrink(size, false); err != nil {
			risk := (*ledger.PromisesAtRiskError)(nil)
			require.ErrorAs(r, err, &risk)
			for _, p := range risk.Promises {
				named = append(named, p.ID)
			}
			require.NoError(r, w.shrink(size, true))
		}
		w.work()
		var hurt []string
		for _, x := range w.live(ann.KeyID) {
			if x.Degraded && x.State() == reservation.Booked {
				hurt = append(hurt, x.ID)
			}
		}
		slices.Sort(hurt)
		slices.Sort(named)
		require.ElementsMatch(r, named, hurt)
	})
}
