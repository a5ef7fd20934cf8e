package verbs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// reserveHours is a reservation of some hours that begins in one, and whose time has come.
func (w *world) reserveHours(who ledger.Actor, hours, gpus int) (r reservation.Reservation) {
	w.Helper()
	r = w.mustReserve(who, gpus, w.windowAfter(time.Hour, time.Duration(1+hours)*time.Hour))
	w.pass(time.Hour)
	require.Equal(w, reservation.Ready, w.readReservation(r.ID).State())
	return r
}

// reservedGPUs is how many GPUs somebody has reserved, and nobody has claimed, at a time from now.
func (w *world) reservedGPUs(who ledger.Actor, in time.Duration) (gpus int) {
	w.Helper()
	for _, r := range w.liveOf(who.KeyID) {
		if r.Window.Contains(w.clock.Now().Add(in)) {
			gpus += r.Shape.GPUs()
		}
	}
	return gpus
}

// claimNow has a job claim what its submitter has reserved, and begin.
func (w *world) claimNow(who ledger.Actor, c ledger.JobCommand) (r running) {
	w.Helper()
	r.Job = w.submit(who, c)
	w.pass(time.Second)
	w.begin(&r)
	require.NotEmpty(w, w.readAllocation(r.AllocationID).Reservations)
	return r
}

// After a job that claims a part of a reservation, its GPUs stay reserved to the end: nobody else books them.
func TestTheTimeAfterAJobStaysReserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	r := w.reserveHours(ann, 3, 8)
	w.claimNow(ann, jobOf(2, short(30)))
	require.Equal(t, 6, w.reservedGPUs(ann, time.Minute))
	require.Equal(t, 8, w.reservedGPUs(ann, time.Hour), "what the job has until then is reserved after it")
	_, err := w.ledger.Reserve(t.Context(), bob, ledger.ReserveRequest{Pool: "lab", GPUs: 2,
		Window: calendar.Interval{Start: w.clock.Now().Add(time.Hour), End: r.Window.End}})
	require.Error(t, err)
	w.mustReserve(bob, 8, calendar.Interval{Start: r.Window.End, End: r.Window.End.Add(time.Hour)})
	w.pass(time.Hour)
	w.claimNow(ann, jobOf(2, short(30)))
}

// A job that ends before it must leaves its GPUs reserved from then on, however long it might have run: the next ones
// claim them, also more of them at once than any of those before had.
func TestWhatAJobDoesNotNeedStaysReserved(t *testing.T) {
	t.Parallel()
	for name, longest := range map[string]int{"over before the reservation": 30, "over after it": 6 * 60} {
		w := newWorld(t)
		ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
		w.reserveHours(ann, 3, 8)
		var all []running
		for range 8 {
			all = append(all, w.claimNow(ann, jobOf(1, short(longest))))
		}
		require.Zero(t, w.reservedGPUs(ann, time.Minute), name)
		for range 2 { // who would have what they leave
			w.submit(bob, jobOf(8, func(c *ledger.JobCommand) { c.Job.MaxRuntime, c.Job.Priority = time.Hour, job.High }))
		}
		for _, r := range all {
			w.endAll(r, succeeded)
			w.pass(time.Minute)
		}
		require.Equal(t, 8, w.reservedGPUs(ann, time.Minute), name)
		next := w.claimNow(ann, jobOf(8, short(60)))
		require.Equal(t, 8, next.Shape.GPUs())
		require.Equal(t, 8, w.reservedGPUs(ann, 100*time.Minute), name)
	}
}

// Who cancels a reservation cancels what jobs leave of it, too, also later.
func TestACancelledReservationIsWhollyCancelled(t *testing.T) {
	t.Parallel()
	for name, longest := range map[string]int{"over before the reservation": 30, "over after it": 6 * 60} {
		w := newWorld(t)
		ann := w.newSubmitter("ann")
		r := w.reserveHours(ann, 3, 8)
		one := w.claimNow(ann, jobOf(2, short(longest)))
		_, err := w.ledger.CancelReservation(t.Context(), ann, r.ID)
		require.NoError(t, err)
		require.Empty(t, w.liveOf(ann.KeyID), name)
		w.endAll(one, succeeded)
		w.pass(time.Minute)
		require.Empty(t, w.liveOf(ann.KeyID), name)
	}
}

// Nobody claims a reservation before its time has come, although its nodes are ready by then.
func TestNobodyClaimsBeforeTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.reserveHour(ann, time.Hour, 8)
	w.pass(time.Hour - time.Second)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	j := w.submit(ann, jobOf(8, short(30)))
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(j.ID).State())
	w.pass(time.Second)
	require.Equal(t, j.ID, w.readReservation(r.ID).JobID, "it claims it then")
}

// A reservation of which a part was used is kept to its end, and was no no-show.
func TestWhatWasUsedInPartIsNoNoShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.reserveHours(ann, 3, 8)
	w.endAll(w.claimNow(ann, jobOf(2, short(30))), succeeded)
	w.pass(2 * time.Hour)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State(), "long after nobody would have come")
	require.Equal(t, 8, w.reservedGPUs(ann, time.Minute), "also what the job has left")
	w.pass(time.Hour)
	require.Empty(t, w.liveOf(ann.KeyID))
	for _, e := range w.readEvents("reservation.expired") {
		require.Equal(t, plan.ReasonWindowEnded, e.Reason, e.Message)
		require.NotContains(t, e.Message, "nobody came")
	}
	require.Equal(t, plan.ReasonWindowEnded, w.readReservation(r.ID).Reason)
}

// What is reserved after a job begins once its GPUs are clean.
func TestTheTimeAfterAJobBeginsWhenItsGPUsAreClean(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.changePool(func(p *capacity.Pool) { p.Timers.Cleaning = 5 * time.Minute })
	ann := w.newSubmitter("ann")
	r := w.reserveHours(ann, 3, 2)
	one := w.claimNow(ann, jobOf(2, short(30)))
	after := func() reservation.Reservation {
		live := w.liveOf(ann.KeyID)
		require.Len(t, live, 1)
		require.Equal(t, r.ID, live[0].PartOf)
		require.Equal(t, r.Window.End, live[0].Window.End)
		return live[0]
	}
	require.Equal(t, w.readAllocation(one.AllocationID).Window.End.Add(5*time.Minute), after().Window.Start)
	w.endAll(one, succeeded)
	ended := w.readJob(one.ID).EndedAt
	w.doDueWork()
	require.Equal(t, ended.Add(7*time.Minute), after().Window.Start, "with the time for the proof")
	w.pass(5*time.Minute + time.Second)
	require.WithinDuration(t, ended.Add(5*time.Minute), after().Window.Start, time.Second)
	w.claimNow(ann, jobOf(2, short(30)))
}

// A job that names a reservation has all of it, also if it comes at the moment at which another one would claim a part.
func TestNobodyClaimsAPartOfWhatAJobHasJustNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.reserveHours(ann, 1, 8)
	part := w.submit(ann, jobOf(2, short(30)))
	var named job.Job
	store := &between{Store: w.store, left: 1, happen: func() { named = w.submit(ann, jobIn(r)) }}
	require.NoError(t, verbs.New(store, &ids.UUID{}, ledger.Config{}).ScheduleJobs(t.Context(), w.pool.ID))
	require.NotEmpty(t, named.ID)
	require.Equal(t, job.Pending, w.readJob(part.ID).State())
	w.pass(time.Second)
	is := w.readReservation(r.ID)
	require.Equal(t, named.ID, is.JobID)
	require.Equal(t, 8, is.Shape.GPUs())
}

// A job that may run for longer than its GPUs are free is not tried on them: others have booked the pool after the
// reservation.
func TestNoClaimIsTriedThatLastsTooLong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		minutes, transactions int
	}{"as long as they are free": {110, 2}, "longer": {130, 3}} {
		w := newWorld(t)
		ann := w.newSubmitter("ann")
		w.reserveHours(ann, 1, 8)
		w.mustReserve(w.newPerson("eve"), 8, w.windowAfter(2*time.Hour, 3*time.Hour))
		w.doDueWork()
		j := w.submit(ann, jobOf(8, short(tc.minutes)))
		l, g := w.gatedLedger()
		require.NoError(t, l.ScheduleJobs(t.Context(), w.pool.ID))
		require.Equal(t, tc.minutes < 120, w.readJob(j.ID).State() == job.Scheduled, name)
		require.Equal(t, tc.transactions, g.transactions, name)
	}
}

// forgetful is a store in which there is no reservation any more.
type forgetful struct{ ledger.Store }

func (s forgetful) Read(ctx context.Context, fn func(ledger.Reader) error) error {
	return s.Store.Read(ctx, func(r ledger.Reader) error { return fn(withoutReservations{r}) })
}

type withoutReservations struct{ ledger.Reader }

func (withoutReservations) Reservation(ledger.Scope, string) (reservation.Reservation, error) {
	return reservation.Reservation{}, ledger.ErrNotFound
}

// A job is explained also where what it claimed cannot be read any more.
func TestAJobIsExplainedWithoutWhatItClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.reserveHours(ann, 1, 8)
	one := w.claimNow(ann, jobOf(8, short(30)))
	e, err := verbs.New(forgetful{w.store}, &ids.UUID{}, ledger.Config{}).ExplainJob(t.Context(), ann, one.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, "It started at once, as it claimed reservation "+r.ID+".")
}

// Who does not claim something for another reason than its length is not told that others have reserved it.
func TestNoClaimIsCalledTooShortThatIsNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	apart := job.Where{Apart: []string{"web"}}
	for range 4 { // one on each node
		w.submit(ann, called("web", 1, apart))
		w.doDueWork()
	}
	start := w.clock.Now()
	r := w.mustReserve(ann, 1, calendar.Interval{Start: start, End: start.Add(30 * time.Minute)})
	j := w.submit(ann, called("other", 1, apart))
	w.doDueWork()
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	require.Equal(t, job.Pending, w.readJob(j.ID).State())
	var codes []string
	for _, b := range w.explainJob(ann, j.ID).Blockers {
		codes = append(codes, b.Code)
	}
	require.Contains(t, codes, "apart")
	require.NotContains(t, codes, "reservation_too_short")
}
