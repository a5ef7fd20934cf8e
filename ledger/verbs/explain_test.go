package verbs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/wait"
	"github.com/forewarm/forewarm/ledger"
)

func (w *world) changePool(change func(*capacity.Pool)) {
	w.Helper()
	var p ledger.Pool
	w.read(func(r ledger.Reader) (err error) {
		p, err = r.Pool(w.pool.ID)
		return err
	})
	_, err := w.ledger.UpdatePool(w.Context(), operator, p.ID, p.DefinitionVersion, change)
	require.NoError(w, err)
}

// reserveWaiting reserves, on the waitlist where there is no place.
func (w *world) reserveWaiting(by ledger.Actor, gpus int, window calendar.Interval) reservation.Reservation {
	w.Helper()
	r, err := w.ledger.Reserve(w.Context(), by, ledger.ReserveRequest{Pool: "lab", GPUs: gpus, Window: window,
		Queue: true})
	require.NoError(w, err)
	return r
}

func (w *world) readLearned() (learned learned.Learned) {
	w.read(func(r ledger.Reader) error {
		p, err := r.Pool(w.pool.ID)
		learned = p.Learned
		return err
	})
	return learned
}

// A fresh pool that boots all its slots for somebody, gives them up and boots them
// again and again within minutes meets no cap.
func TestBootsThatServeSomebodyMeetNoCap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.changePool(func(p *capacity.Pool) { p.Timers.IdleRelease = 0 })
	for range 6 {
		a := w.mustAllocate(ann, 8)
		w.pass(boot)
		require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
		_, err := w.ledger.Release(t.Context(), ann, a.ID)
		require.NoError(t, err)
		w.pass(time.Minute)
		require.Empty(t, w.readNodes(node.Ready))
	}
	require.Len(t, w.readNodes(), 24, "in half an hour")
}

// Nodes that serve nobody meet it, and explain says so, until when, and is right.
func TestExplainNamesTheCapAndWhenItEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.changePool(func(p *capacity.Pool) { p.MaxCreates = 2 })
	first := w.mustAllocate(ann, 4)
	w.doDueWork()
	_, err := w.ledger.Release(t.Context(), ann, first.ID) // before anything was ready
	require.NoError(t, err)
	w.pass(boot)
	w.mustReserve(ann, 4, w.windowAfter(time.Minute, 3*time.Hour)) // for what is ready
	require.Equal(t, 2, w.readLearned().Created.Sum(10*time.Minute, w.clock.Now()))
	a := w.mustAllocate(ann, 2) // a node that the cap holds back
	w.doDueWork()
	e, err := w.ledger.ExplainAllocation(t.Context(), ann, a.ID)
	require.NoError(t, err)
	require.Len(t, e.Blockers, 1)
	require.Equal(t, plan.HeldCapped, e.Blockers[0].Code)
	until := e.Blockers[0].ClearsAt.P90
	require.Equal(t, until, w.cappedUntil(), "and the pool says the same")
	require.Equal(t, w.readNodes()[0].RequestedAt.Add(10*time.Minute), until)
	require.True(t, until.After(w.clock.Now().Add(time.Minute)))
	require.GreaterOrEqual(t, e.Wait.P10, until.Sub(w.clock.Now()), "no estimate ends before the node is asked for")
	w.pass(until.Sub(w.clock.Now()) - time.Second)
	require.Len(t, w.readNodes(), 2)
	w.pass(time.Second + time.Millisecond)
	require.Len(t, w.readNodes(), 3, "asked for when it was said")
	w.pass(boot)
	require.Equal(t, allocation.Active, w.readAllocation(a.ID).State())
	require.Zero(t, w.readLearned().Created.Sum(10*time.Minute, w.clock.Now()))
}

// cappedUntil is until when the pool says that it asks for no node.
func (w *world) cappedUntil() (until time.Time) {
	w.read(func(r ledger.Reader) error {
		state, err := r.PoolState(w.pool.ID)
		seen := state.Snapshot()
		until = seen.Capped(w.clock.Now())
		return err
	})
	return until
}

// What waits for more nodes than the cap allows gets them all: its own nodes are
// for somebody. Where it gives up, they have served nobody.
func TestALeaseDoesNotHoldItselfUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.changePool(func(p *capacity.Pool) { p.MaxCreates, p.CreateWindow = 1, 20*time.Minute })
	a := w.mustAllocate(ann, 6)
	w.doDueWork()
	require.Len(t, w.readNodes(), 3, "all at once")
	require.Zero(t, w.cappedUntil())
	_, err := w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	w.pass(time.Second)
	require.Equal(t, w.readNodes()[0].RequestedAt.Add(20*time.Minute), w.cappedUntil())
}

// With half an hour of cleaning the first place comes half an hour after a lease,
// whenever it ends: the estimate, the calendar and what happens agree.
func TestAWaitCountsTheCleaning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.changePool(func(p *capacity.Pool) { p.Timers.Cleaning = 30 * time.Minute })
	a := w.mustAllocate(ann, 8)
	w.pass(boot)
	held := w.readAllocation(a.ID)
	require.Equal(t, allocation.Active, held.State())
	r := w.reserveWaiting(ann, 2, w.windowAfter(0, 8*time.Hour))
	require.Equal(t, reservation.Waitlisted, r.State())
	e, err := w.ledger.ExplainReservation(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.GreaterOrEqual(t, e.Wait.P10, 30*time.Minute)
	require.LessOrEqual(t, e.Wait.P90, 90*time.Minute)
	w.pass(20 * time.Minute)
	_, err = w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	_, err = w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 2, Lease: time.Hour})
	require.Error(t, err, "nothing is clean")
	w.pass(29 * time.Minute)
	require.Equal(t, reservation.Waitlisted, w.readReservation(r.ID).State())
	w.pass(time.Minute + time.Second)
	require.NotEqual(t, reservation.Waitlisted, w.readReservation(r.ID).State())
	require.Empty(t, w.readLearned().Cleaning)
}

// Leases that end early shorten the wait of whoever waits for one to end.
func TestLeasesThatEndEarlyShortenAWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	ask := func() *wait.Estimate {
		a := w.mustAllocate(ann, 8)
		w.pass(boot)
		r := w.reserveWaiting(ann, 8, w.windowAfter(0, 8*time.Hour))
		e, err := w.ledger.ExplainReservation(t.Context(), ann, r.ID)
		require.NoError(t, err)
		_, err = w.ledger.CancelReservation(t.Context(), ann, r.ID)
		require.NoError(t, err)
		w.pass(6 * time.Minute)
		_, err = w.ledger.Release(t.Context(), ann, a.ID)
		require.NoError(t, err)
		w.pass(time.Minute)
		return e.Wait
	}
	before := ask()
	require.Contains(t, before.Basis, "prior")
	for range 12 {
		ask()
	}
	after := ask()
	require.Contains(t, after.Basis, "lease_use")
	require.Equal(t, 13, after.Samples)
	require.Len(t, w.readLearned().Leases.Seen, 14)
	require.Less(t, after.P90, before.P50, "%s, and %s before", after.P90, before.P50)
	require.LessOrEqual(t, after.P10, 6*time.Minute+time.Second)
	require.GreaterOrEqual(t, after.P90, 5*time.Minute+50*time.Second)
}

// A window that is over before there is a place is told so, and no time is told
// that lies beyond it.
func TestNoPlaceIsExpectedAfterItExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.mustAllocate(ann, 8) // for an hour
	w.pass(boot)
	soon := w.reserveWaiting(ann, 8, w.windowAfter(0, 20*time.Minute))
	e, err := w.ledger.ExplainReservation(t.Context(), ann, soon.ID)
	require.NoError(t, err)
	require.Nil(t, e.Wait)
	require.Contains(t, e.Summary, "no place yet, and none is expected before it expires")
	_, err = w.ledger.CancelReservation(t.Context(), ann, soon.ID)
	require.NoError(t, err)
	later := w.reserveWaiting(ann, 2, w.windowAfter(0, 8*time.Hour))
	e, err = w.ledger.ExplainReservation(t.Context(), ann, later.ID)
	require.NoError(t, err)
	require.NotNil(t, e.Wait)
	require.LessOrEqual(t, e.Wait.P90, 8*time.Hour)
	require.NotContains(t, e.Summary, "none is expected")
}

// While the provider has nothing, a wait counts that it may have nothing again, and
// that a lease may end before.
func TestAWaitCountsStockOuts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	w.mustAllocate(ann, 2)
	w.pass(boot)
	w.soldOut = true
	a := w.mustAllocate(bob, 2)
	w.doDueWork()
	e, err := w.ledger.ExplainAllocation(t.Context(), bob, a.ID)
	require.NoError(t, err)
	require.Contains(t, e.Wait.Basis, wait.BasisStock)
	require.Greater(t, e.Wait.P90, e.Wait.P10+5*time.Minute, "it is not known when there is something")
	require.LessOrEqual(t, e.Wait.P90, time.Hour, "the lease is over then")
	require.Contains(t, e.Blockers[0].Evidence[0], "nothing 1 time in a row")
}

// A node in use says who uses it now, and one that goes that it goes when empty.
func TestANodeInUseIsUsedNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.mustAllocate(w.newPerson("ann"), 2)
	w.pass(boot)
	n := w.readNodes(node.Ready)[0]
	_, err := w.ledger.DrainNode(t.Context(), operator, n.ID, "")
	require.NoError(t, err)
	e, err := w.ledger.ExplainNode(t.Context(), operator, n.ID)
	require.NoError(t, err)
	require.Equal(t, a.ID+" uses it now; its lease ends then", e.Next[0].Message)
	require.Equal(t, w.readAllocation(a.ID).LeaseUntil, e.Next[0].At)
	require.Contains(t, e.Summary, "removed when it is empty")
}

// What is drained says since when and why, and not what another node will serve.
func TestExplainSaysWhyANodeIsDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.warmNodes(1)
	n := w.readNodes(node.Ready)[0]
	w.allocateFor(ann, 1, time.Hour)
	w.changePool(func(p *capacity.Pool) { p.MaxNodes = 1 })
	booked := w.mustReserve(ann, 2, w.windowAfter(2*time.Hour, 3*time.Hour))
	w.pass(time.Minute)
	before, err := w.ledger.ExplainNode(t.Context(), operator, n.ID)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(before.Next), booked.ID)
	_, err = w.ledger.DrainNode(t.Context(), operator, n.ID, "its fans rattle")
	require.NoError(t, err)
	drained := w.clock.Now()
	w.pass(time.Minute)
	e, err := w.ledger.ExplainNode(t.Context(), operator, n.ID)
	require.NoError(t, err)
	require.Equal(t, drained, e.Since)
	require.Contains(t, e.Summary, "an operator asked for it: its fans rattle")
	of, err := w.ledger.ExplainNode(t.Context(), ann, n.ID)
	require.NoError(t, err)
	require.NotContains(t, of.Summary, "rattle", "which is said among operators")
	require.NotContains(t, fmt.Sprint(e.Next), booked.ID)
	require.Len(t, e.Next, 1, "the lease that is on it")
}
