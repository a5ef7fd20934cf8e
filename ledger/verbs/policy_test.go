package verbs_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

func (w *world) readOrganization(id string) (o ledger.Organization) {
	w.Helper()
	w.read(func(r ledger.Reader) (err error) {
		o, err = r.Organization(ledger.Scope{All: true}, id)
		return err
	})
	return o
}

// setLimits sets the limits of a person's organization, whatever its version is.
func (w *world) setLimits(of ledger.Actor, limits quota.Limits, force bool) (ledger.LimitsChange, error) {
	w.Helper()
	return w.ledger.SetLimits(w.Context(), operator, of.OrganizationID, w.readOrganization(of.OrganizationID).Version,
		limits, force)
}

// The journal tells all that bounds an organization: whoever looks for what was changed finds it.
func TestTheJournalTellsAllLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	_, err := w.setLimits(ann, quota.Limits{GPUs: 4, GPUHours: quota.AtMost(10), MoneyPerPeriod: quota.AtMost(2_500_000),
		Period: quota.PerMonth, Bookings: quota.AtMost(7), Weight: 3}, false)
	require.NoError(t, err)
	w.read(func(r ledger.Reader) error {
		all, err := r.Events(ledger.Scope{All: true}, ledger.EventFilter{Type: "organization.limited"}, 10)
		require.Len(t, all, 1)
		require.Equal(t, "4 GPUs, $0.00 of speculation a day, 10 GPU-hours a month, 7 reservations and allocations, "+
			"$2.50 a month, weight 3", all[0].Message)
		return err
	})
}

func TestLimitsAreNotSetBehindTheBackOfPromises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	window := w.windowAfter(time.Hour, 2*time.Hour)
	first := w.mustReserve(ann, 4, window)
	second := w.mustReserve(ann, 2, window)
	later := w.mustReserve(ann, 4, w.windowAfter(3*time.Hour, 4*time.Hour))

	four := quota.Limits{GPUs: 4}
	var risk *ledger.PromisesAtRiskError
	_, err := w.setLimits(ann, four, false)
	require.ErrorAs(t, err, &risk)
	require.Len(t, risk.Promises, 1)
	require.Equal(t, second.ID, risk.Promises[0].ID)
	require.Equal(t, 100, w.readOrganization(ann.OrganizationID).Limits.GPUs, "nothing was changed")

	changed, err := w.setLimits(ann, four, true)
	require.NoError(t, err)
	require.Len(t, changed.Degraded, 1)
	require.Equal(t, ledger.ReasonQuotaReduced, w.readReservation(second.ID).Reason)
	for id, degraded := range map[string]bool{first.ID: false, second.ID: true, later.ID: false} {
		r := w.readReservation(id)
		require.True(t, r.Placed(), "nothing is dropped")
		require.Equal(t, degraded, r.Degraded)
	}
	changed, err = w.setLimits(ann, quota.Limits{GPUs: 6}, false)
	require.NoError(t, err)
	require.Equal(t, []string{second.ID}, changed.Restored)
	require.False(t, w.readReservation(second.ID).Degraded)
}

// However limits are set and bookings made at the same time, what is promised
// and not marked degraded is within the limits.
func TestLimitsAndBookingsAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newLimitedPerson("ann", quota.Limits{GPUs: 8})
	window := w.windowAfter(time.Hour, 2*time.Hour)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { _, _ = w.setLimits(ann, quota.Limits{GPUs: 2 + i%5}, i%2 == 0) })
		all.Go(func() {
			_, _ = w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: window})
		})
	}
	all.Wait()
	held := 0
	for _, r := range w.liveOf(ann.KeyID) {
		if !r.Degraded {
			held += r.Shape.GPUs()
		}
	}
	require.LessOrEqual(t, held, w.readOrganization(ann.OrganizationID).Limits.GPUs)
	require.Positive(t, held)
}

func TestACohortLendsAndGetsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	member := quota.Limits{GPUs: 4, Cohort: "research", Borrowing: quota.Bounds{quota.GPUs: quota.AtMost(2)}}
	ann, bob := w.newLimitedPerson("ann", member), w.newLimitedPerson("bob", member)
	window := w.windowAfter(time.Hour, 2*time.Hour)
	borrowed := w.mustReserve(ann, 6, window)
	_, err := w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: window})
	require.Contains(t, itemErrors(t, err), admission.QuotaExceeded, "it may borrow two")
	_, err = w.ledger.Reserve(t.Context(), bob, ledger.ReserveRequest{Pool: "lab", GPUs: 3, Window: window})
	require.Contains(t, itemErrors(t, err), admission.CohortExhausted, "two of its own are lent")
	w.mustReserve(bob, 2, window)
	_, err = w.ledger.CancelReservation(t.Context(), ann, borrowed.ID)
	require.NoError(t, err)
	w.mustReserve(bob, 4, window)
	_, err = w.setLimits(bob, quota.Limits{GPUs: 4}, false)
	var risk *ledger.PromisesAtRiskError
	require.ErrorAs(t, err, &risk, "who leaves the cohort borrows nothing")
}

func TestCapsOfAPersonHoldForAllTheirKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	laptop := w.newPerson("ann")
	laptop.UserID, laptop.UserCaps = "usr_ann", quota.Caps{MaxGPUs: 2, MaxPerDay: 100 * money.USD,
		MaxLead: 24 * time.Hour, MaxWindow: 4 * time.Hour}
	desktop := laptop
	desktop.KeyID = "another key of ann"
	window := w.windowAfter(time.Hour, 2*time.Hour)
	w.mustReserve(laptop, 2, window)
	_, err := w.ledger.Reserve(t.Context(), desktop, ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: window})
	require.Contains(t, itemErrors(t, err), admission.UserCapExceeded)
	w.mustReserve(desktop, 2, w.windowAfter(3*time.Hour, 4*time.Hour))
}

func TestAPauseStopsSpeculationAndEndsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	bot := agentBeside(ann, "agent")
	speculative := w.mustReserve(bot, 2, w.windowAfter(62*time.Minute, 2*time.Hour))
	promise := w.mustReserve(ann, 2, w.windowAfter(20*time.Minute, 2*time.Hour))
	_, err := w.ledger.PausePrewarming(t.Context(), operator, ann.OrganizationID, "budget",
		w.clock.Now().Add(time.Hour))
	require.NoError(t, err)
	_, err = w.ledger.Reserve(t.Context(), bot, ledger.ReserveRequest{Pool: "lab", GPUs: 1,
		Window: w.windowAfter(time.Hour, 2*time.Hour)})
	require.Contains(t, itemErrors(t, err), admission.PrewarmPaused)
	w.pass(25 * time.Minute)
	require.Equal(t, reservation.Ready, w.readReservation(promise.ID).State(), "promises are kept")
	w.pass(34 * time.Minute)
	require.Equal(t, reservation.Booked, w.readReservation(speculative.ID).State(),
		"its lead time has come, but what is speculative is not warmed")
	w.pass(9 * time.Minute)
	require.Equal(t, reservation.Ready, w.readReservation(speculative.ID).State(),
		"it is made up for once the pause is over")
}

func TestFlexibleWindows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	full := w.mustReserve(ann, 8, w.windowAfter(time.Hour, 3*time.Hour))
	ask := ledger.ReserveRequest{Pool: "lab", GPUs: 4, Range: calendar.TimeRange{
		StartNotEarlierThan: full.Window.Start, MinDuration: time.Hour, MaxDuration: 2 * time.Hour,
		EndNotLaterThan: w.clock.Now().Add(8 * time.Hour),
	}}
	found, err := w.ledger.Advise(t.Context(), bob, ask, 5)
	require.NoError(t, err)
	require.Len(t, found, 3)
	require.Equal(t, full.Window.End, found[0].Window.Start)
	for _, r := range found {
		got, err := w.ledger.Reserve(t.Context(), bob, ledger.ReserveRequest{Pool: r.PoolID, GPUs: 4, Window: r.Window})
		require.NoError(t, err, "what is recommended succeeds")
		require.Equal(t, r.Cost, got.Cost)
	}
	got, err := w.ledger.Reserve(t.Context(), ann, ask)
	require.NoError(t, err)
	require.Equal(t, full.Window.End, got.Window.Start, "the earliest is booked")
	_, err = w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "lab", GPUs: 16, Range: ask.Range})
	require.Contains(t, itemErrors(t, err), admission.NoMatchingHardware)
}

func TestASplitPoolKeepsAShareForEachWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	change := func(to func(*capacity.Pool)) {
		p, err := w.ledger.UpdatePool(t.Context(), operator, "lab", w.pool.DefinitionVersion, to)
		require.NoError(t, err)
		w.pool = p
	}
	change(func(p *capacity.Pool) { p.OnlineShare = 750 })
	window := w.windowAfter(time.Hour, 2*time.Hour)
	batch := func(gpus int) error {
		_, err := w.ledger.Reserve(t.Context(), ann,
			ledger.ReserveRequest{Pool: "lab", GPUs: gpus, Window: window, Workload: capacity.Batch})
		return err
	}
	require.NoError(t, batch(2))
	require.Contains(t, itemErrors(t, batch(1)), admission.WorkloadShareExceeded)
	free, err := w.ledger.FreeBusy(t.Context(), "lab", window.Start, window.End, 0)
	require.NoError(t, err)
	require.Equal(t, []ledger.WorkloadLevel{{Workload: capacity.Online, Share: 6, Free: 6},
		{Workload: capacity.Batch, Share: 2, Used: 2}}, free.Steps[0].Workloads)
	change(func(p *capacity.Pool) { p.BorrowIdle = true })
	require.NoError(t, batch(4), "it may borrow what is free")
	require.Contains(t, itemErrors(t, batch(4)), admission.CapacityExhausted, "and no more")
}

func TestAPoolMayShrinkBelowWhatIsPromised(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	promised := w.mustReserve(w.newPerson("ann"), 8, w.windowAfter(2*time.Hour, 3*time.Hour))
	_, err := w.ledger.ForcePool(t.Context(), operator, "lab", w.pool.DefinitionVersion,
		func(p *capacity.Pool) { p.MaxNodes = 2 })
	require.NoError(t, err)
	w.doDueWork()
	r := w.readReservation(promised.ID)
	require.True(t, r.Placed() && r.Degraded, "kept, and told of: %+v", r)
	w.read(func(r ledger.Reader) (err error) { w.pool, err = r.Pool("lab"); return err })
	_, err = w.ledger.UpdatePool(t.Context(), operator, "lab", w.pool.DefinitionVersion,
		func(p *capacity.Pool) { p.MaxNodes = 4 })
	require.NoError(t, err)
	w.pass(2 * time.Hour)
	require.Len(t, w.readNodes(node.Ready), 4)
	require.False(t, w.readReservation(promised.ID).Degraded, "growing heals")
}

func TestALeaseIsNotExtendedBeyondTheLongest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	ann := w.newPerson("ann")
	a := w.mustAllocate(ann, 1)
	_, err := w.ledger.Extend(t.Context(), ann, a.ID, 20*time.Hour)
	require.NoError(t, err)
	_, err = w.ledger.Extend(t.Context(), ann, a.ID, 4*time.Hour)
	require.Contains(t, itemErrors(t, err), admission.WindowTooLong, "the whole lease counts")
}

// Who has used less of the pool is served first, though the other waits longer.
func TestTheWaitlistIsServedByFairShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob, cid := w.newPerson("ann"), w.newPerson("bob"), w.newPerson("cid")
	a := w.mustAllocate(ann, 8)
	w.pass(50 * time.Minute)
	_, err := w.ledger.Release(t.Context(), ann, a.ID)
	require.NoError(t, err)
	full := w.mustReserve(cid, 8, w.windowAfter(2*time.Hour, 3*time.Hour))
	var waiting []reservation.Reservation
	for _, by := range []ledger.Actor{ann, bob} {
		r, err := w.ledger.Reserve(t.Context(), by, ledger.ReserveRequest{Pool: "lab", GPUs: 8, Window: full.Window,
			Queue: true})
		require.NoError(t, err)
		require.Equal(t, reservation.Waitlisted, r.State())
		waiting = append(waiting, r)
		w.pass(time.Minute)
	}
	_, err = w.ledger.CancelReservation(t.Context(), cid, full.ID)
	require.NoError(t, err)
	w.pass(2 * time.Minute)
	require.Equal(t, reservation.Waitlisted, w.readReservation(waiting[0].ID).State(),
		"ann had the whole pool just now")
	require.Equal(t, reservation.Booked, w.readReservation(waiting[1].ID).State())
	_, shares, err := w.ledger.Shares(t.Context(), operator, "lab")
	require.NoError(t, err)
	require.Equal(t, ann.OrganizationID, shares[0].OrganizationID)
	require.Positive(t, shares[0].Share)
	_, own, err := w.ledger.Shares(t.Context(), bob, "lab")
	require.NoError(t, err)
	require.Empty(t, own, "nobody sees another's")
}
