package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// readUsage is what an organization has used of the pool, as it is stored.
func (w *world) readUsage(of ledger.Actor) (usage fairshare.Usage) {
	w.Helper()
	w.read(func(r ledger.Reader) error {
		s, err := r.PoolState(w.pool.ID)
		for _, use := range s.Uses {
			if use.OrganizationID == of.OrganizationID {
				usage = use.Usage
			}
		}
		return err
	})
	return usage
}

// requireUsage compares usages as of the same moment.
func (w *world) requireUsage(want fairshare.Usage, of ledger.Actor, why string) {
	w.Helper()
	got := w.readUsage(of)
	require.True(w, want.At.Equal(got.At), "%s: as of %s", why, got.At)
	require.InDelta(w, want.Expected, got.Expected, 1e-6, "%s: expected", why)
	require.InDelta(w, want.Claimed, got.Claimed, 1e-6, "%s: claimed", why)
	require.InDeltaSlice(w, want.Held[:], got.Held[:], 1e-6, "%s: held", why)
	require.InDeltaSlice(w, want.Idle[:], got.Idle[:], 1e-6, "%s: idle", why)
	require.InDeltaSlice(w, want.Entered[:], got.Entered[:], 1e-6, "%s: entered", why)
}

// twoGPUs is a node of the lab.
var twoGPUs = capacity.Shape{Nodes: 1, PerNode: 2}

func TestHeldTimeIsChargedWhenItIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	fair, demand := fairshare.Default(), quota.Demand(w.pool.Pool, twoGPUs)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	begin := w.clock.Now()
	a := w.mustAllocate(ann, 2)
	entered := fair.ChargeEntry(fairshare.Usage{}, begin, demand)
	w.requireUsage(entered, ann, "while it is held")
	w.clock.Advance(20 * time.Minute)
	_, err := w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	w.requireUsage(fair.ChargeUse(entered, w.clock.Now(), demand, 20*time.Minute), ann, "after it was given back")

	used := w.readUsage(ann)
	ended := w.mustAllocate(ann, 2)
	waiting := w.mustAllocate(bob, 2)
	begin = w.clock.Now()
	entered = fair.ChargeEntry(fairshare.Usage{}, w.clock.Now(), demand)
	w.clock.Advance(time.Minute)
	_, err = w.ledger.Release(t.Context(), bob, waiting.ID)
	require.NoError(t, err)
	w.requireUsage(entered, bob, "whoever gave up waiting held nothing")
	w.pass(time.Hour - time.Minute)
	require.Equal(t, allocation.Expired, w.readAllocation(ended.ID).State())
	used = fair.ChargeUse(fair.ChargeEntry(used, begin, demand), w.clock.Now(), demand, time.Hour)
	w.requireUsage(used, ann, "after its lease ended")
}

// A speculative reservation of a node for an hour, from ten minutes on. What it kept warm is charged,
// and it is judged, unless nothing was warmed for it or it gave way to others.
func TestASpeculativeReservationIsChargedForWhatItKeptWarm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class  reservation.Class
		end    func(w *world, by ledger.Actor, id string)
		judged bool
		came   bool
	}{
		"it comes true": {reservation.Speculative, func(w *world, by ledger.Actor, id string) {
			w.pass(10 * time.Minute)
			_, err := w.ledger.Claim(w.Context(), by, id, 0, "")
			require.NoError(w, err)
		}, true, true},
		"nobody comes": {reservation.Speculative, func(w *world, _ ledger.Actor, _ string) {
			w.pass(2 * time.Hour)
		}, true, false},
		"it is given up while it is warm": {reservation.Speculative, func(w *world, by ledger.Actor, id string) {
			w.pass(10 * time.Minute)
			_, err := w.ledger.CancelReservation(w.Context(), by, id)
			require.NoError(w, err)
		}, true, false},
		"it is given up before": {reservation.Speculative, func(w *world, by ledger.Actor, id string) {
			_, err := w.ledger.CancelReservation(w.Context(), by, id)
			require.NoError(w, err)
		}, false, false},
		"it gives way": {reservation.Speculative, func(w *world, _ ledger.Actor, _ string) {
			w.pass(10 * time.Minute)
			w.mustReserve(w.newPerson("bob"), 8, w.windowAfter(time.Minute, time.Hour))
		}, false, false},
		"it was a promise": {reservation.Guaranteed, func(w *world, _ ledger.Actor, _ string) {
			w.pass(2 * time.Hour)
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ann := w.newPerson("ann")
			r, err := w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 2, Class: c.class,
				Probability: 0.25, Window: w.windowAfter(10*time.Minute, 70*time.Minute)})
			require.NoError(t, err)
			c.end(w, ann, r.ID)
			r = w.readReservation(r.ID)
			require.False(t, r.Live())
			end, fair := r.EndedAt, fairshare.Default()
			demand := quota.Demand(w.pool.Pool, twoGPUs)
			var want fairshare.Usage
			kept := time.Duration(0)
			if !r.WarmedAt.IsZero() {
				kept = end.Sub(r.WarmedAt)
				require.Positive(t, kept)
			}
			if c.judged {
				want = fair.Outcome(fair.ChargeSpeculative(want, end, demand, kept), end, r.Probability, 2*3600, c.came)
			}
			if c.came {
				want = fair.ChargeEntry(want, end, demand)
			}
			w.requireUsage(want, ann, name)
			require.Equal(t, money.MicroUSD(kept)*2*money.USD/money.MicroUSD(time.Hour), r.Cost,
				"it cost what it kept warm")
		})
	}
}

// A transaction that could not be stored charged nobody.
func TestWhatCouldNotBeStoredIsNotCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	ask := ledger.AllocateRequest{Pool: "lab", GPUs: 2, Lease: time.Hour}
	fair, demand := fairshare.Default(), quota.Demand(w.pool.Pool, twoGPUs)
	var want fairshare.Usage
	for range 2 {
		g.fail = 1
		_, err := l.Allocate(t.Context(), ann, ask)
		require.ErrorIs(t, err, errFull)
		_, err = l.Allocate(t.Context(), ann, ask)
		require.NoError(t, err)
		want = fair.ChargeEntry(want, w.clock.Now(), demand)
		w.requireUsage(want, ann, "each that was stored counts once")
		w.clock.Advance(time.Minute)
	}
}

// A transaction that could not be stored cleaned nothing.
func TestWhatCouldNotBeStoredIsNotCleaned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.changePool(func(p *capacity.Pool) { p.Timers.Cleaning = 20 * time.Minute })
	w.changePool(func(p *capacity.Pool) { p.MinNodes = 1 })
	w.pass(boot)
	l, g := w.gatedLedger()
	ann := w.newPerson("ann")
	a, err := l.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 2, Lease: time.Hour})
	require.NoError(t, err)
	require.Equal(t, allocation.Active, a.State())
	g.fail = 1
	_, err = l.Release(t.Context(), ann, a.ID)
	require.ErrorIs(t, err, errFull)
	require.Empty(t, w.readLearned().Cleaning)
	_, err = l.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	require.Len(t, w.readLearned().Cleaning, 1, "once")
}

// How much of a lease is used is learned from whoever gives it back and from a lease
// that ends.
func TestHowMuchOfALeaseIsUsedIsLearned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.look = time.Minute
	w.warmNodes(1)
	ann := w.newPerson("ann")
	seen := w.readLearned().Leases.Seen
	early := w.mustAllocate(ann, 1)
	w.mustAllocate(ann, 1)
	w.pass(15 * time.Minute)
	_, err := w.ledger.Release(t.Context(), ann, early.ID)
	require.NoError(t, err)
	require.Equal(t, append(seen, 250_000), w.readLearned().Leases.Seen)
	w.pass(45 * time.Minute)
	require.Equal(t, append(seen, 250_000, 1_000_000), w.readLearned().Leases.Seen)
	lost := w.mustAllocate(ann, 2)
	w.clock.Advance(10 * time.Minute)
	w.lost = ledger.Loss{Preempted: true, Ended: w.clock.Now()}
	for id := range w.up {
		delete(w.up, id)
	}
	w.pass(30 * time.Minute)
	require.Equal(t, allocation.Failed, w.readAllocation(lost.ID).State())
	require.Len(t, w.readLearned().Leases.Seen, len(seen)+2, "what a lost node ended says nothing")
}

// What was given back, and what a lease left, is nobody's until it is clean.
func TestWhatWasUsedIsCleanedBeforeTheNext(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, by ledger.Actor, a allocation.Allocation){
		"given back": func(w *world, by ledger.Actor, a allocation.Allocation) {
			_, err := w.ledger.Release(w.Context(), by, a.ID)
			require.NoError(w, err)
		},
		"its lease ended": func(w *world, _ ledger.Actor, _ allocation.Allocation) { w.pass(50 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.changePool(func(p *capacity.Pool) { p.Timers.Cleaning, p.Timers.IdleRelease = 20*time.Minute, time.Hour })
			ann := w.newPerson("ann")
			a := w.mustAllocate(ann, 8)
			w.pass(boot)
			w.pass(10 * time.Minute)
			require.Empty(t, w.readLearned().Cleaning)
			end(w, ann, a)
			over := w.clock.Now()
			dirty := w.readLearned().Cleaning
			require.Len(t, dirty, 1)
			require.True(t, over.Equal(dirty[0].Since))
			require.Len(t, dirty[0].UUIDs, 8)
			require.Equal(t, a.Slots, dirty[0].Slots)
			require.Equal(t, []int{2, 0}, []int{dirty[0].GPUs, dirty[0].Short})
			_, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Lease: time.Hour})
			require.Equal(t, []admission.Code{admission.CapacityExhausted}, itemErrors(t, err), "there is no clean one")
			w.pass(20 * time.Minute)
			require.Equal(t, allocation.Active, w.mustAllocate(ann, 8).State())
			require.Empty(t, w.readLearned().Cleaning)
		})
	}
}

// Nodes whose first user comes are taken off those that were asked for and served
// nobody, once each.
func TestANodeServesForTheFirstTimeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.changePool(func(p *capacity.Pool) { p.MinNodes = 2 })
	w.pass(boot)
	require.Len(t, w.readNodes(node.Ready), 2)
	created := func() int { return w.readLearned().Created.Sum(10*time.Minute, w.clock.Now()) }
	require.Equal(t, 2, created(), "they have served nobody")
	one := w.mustAllocate(ann, 1)
	require.Equal(t, 1, created())
	beside := w.mustAllocate(ann, 1)
	require.Equal(t, one.Slots, beside.Slots)
	require.Equal(t, 1, created(), "its other GPU is somebody's: it has served before")
	other := w.mustAllocate(ann, 2)
	require.NotEqual(t, one.Slots, other.Slots)
	require.Zero(t, created())
	require.Equal(t, allocation.Active, other.State())
}

// What a node that is used late counts no more takes nothing off those asked for since.
func TestANodeThatNoLongerCountsTakesNothingOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.changePool(func(p *capacity.Pool) { p.MinNodes = 1 })
	w.pass(boot)
	old := w.readNodes(node.Ready)[0]
	w.mustReserve(w.newPerson("bob"), 2, w.windowAfter(boot+guard, time.Hour))
	w.mustReserve(w.newPerson("bea"), 2, w.windowAfter(boot+guard, time.Hour))
	w.clock.Set(old.RequestedAt.Add(10*time.Minute - time.Second))
	w.doDueWork()
	w.clock.Set(old.RequestedAt.Add(10 * time.Minute))
	before := w.readLearned().Created.Sum(10*time.Minute, w.clock.Now())
	require.Positive(t, before)
	w.changePool(func(p *capacity.Pool) { p.MinNodes = 0 })
	a, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 2, Lease: time.Minute})
	require.NoError(t, err)
	require.Equal(t, allocation.Active, a.State())
	require.Equal(t, []int{old.Slot}, a.Slots)
	require.Equal(t, before, w.readLearned().Created.Sum(10*time.Minute, w.clock.Now()))
}

// A node that was given back has served, whoever comes next.
func TestANodeThatWasGivenBackHasServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.changePool(func(p *capacity.Pool) { p.MinNodes, p.MaxNodes = 1, 2 })
	w.pass(boot)
	first := w.mustAllocate(ann, 2)
	require.Zero(t, w.readLearned().Created.Sum(10*time.Minute, w.clock.Now()))
	w.mustReserve(w.newPerson("bob"), 2, w.windowAfter(boot+guard, time.Hour)) // the second is asked for
	w.doDueWork()
	w.clock.Advance(time.Second)
	_, err := w.ledger.Release(t.Context(), ann, first.ID)
	require.NoError(t, err)
	require.Equal(t, 1, w.readLearned().Created.Sum(10*time.Minute, w.clock.Now()))
	again := w.mustAllocate(ann, 2)
	require.Equal(t, first.Slots, again.Slots)
	require.Equal(t, 1, w.readLearned().Created.Sum(10*time.Minute, w.clock.Now()), "the second is still to serve")
}
