package verbs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// reserveFor is an hour's reservation for certain jobs, on so many GPUs.
func (w *world) reserveFor(who ledger.Actor, from time.Duration, gpus int, jobs reservation.ForJobs) (
	r reservation.Reservation) {
	w.Helper()
	start := w.clock.Now().Add(from)
	r, err := w.ledger.Reserve(w.Context(), who, ledger.ReserveRequest{Pool: "lab", GPUs: gpus, ForJobs: jobs,
		Window: calendar.Interval{Start: start, End: start.Add(time.Hour)}})
	require.NoError(w, err)
	return r
}

// newColleague is somebody of the same organization, with a key of their own.
func (w *world) newColleague(of ledger.Actor, name string) ledger.Actor {
	w.Helper()
	made, err := w.ledger.CreateKey(w.Context(), operator, ledger.Key{ID: "key_" + name, Name: name,
		OrganizationID: of.OrganizationID, Kind: ledger.PersonKey, Role: ledger.Member, Hash: []byte{2}})
	require.NoError(w, err)
	of.KeyID = made.ID
	return of
}

// A job that may wait in several pools does so where something is reserved for it, which is paid for.
func TestAJobGoesWhereItsReservationIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	dear := w.addPool("dear", 9*money.USD, nil)
	start := w.clock.Now().Add(time.Hour)
	r, err := w.ledger.Reserve(t.Context(), ann, ledger.ReserveRequest{Pool: "dear", GPUs: 2,
		Window: calendar.Interval{Start: start, End: start.Add(time.Hour)}})
	require.NoError(t, err)
	early := w.submit(ann, anywhere(2, short(10)))
	require.Equal(t, w.pool.ID, early.PoolID, "nothing can be claimed yet")
	later := w.submit(ann, anywhere(2, func(c *ledger.JobCommand) { c.Job.NotBefore = start.Add(time.Minute) }))
	require.Equal(t, dear.ID, later.PoolID, "it will be, when that one may start")
	_, err = w.ledger.CancelJob(t.Context(), ann, later.ID)
	require.NoError(t, err)
	w.pass(time.Hour)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	require.Equal(t, w.pool.ID, w.submit(bob, anywhere(2, short(10))).PoolID, "it is not reserved for others")
	claims := w.submit(ann, anywhere(2, short(10)))
	require.Equal(t, dear.ID, claims.PoolID)
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(claims.ID).State())
	require.Equal(t, claims.ID, w.readReservation(r.ID).JobID)
}

func short(minutes int) func(*ledger.JobCommand) {
	return func(c *ledger.JobCommand) { c.Job.MaxRuntime = time.Duration(minutes) * time.Minute }
}

// A job claims by itself what its submitter has reserved, before all that wait, and as much as it needs: the rest stays
// reserved, for the next ones.
func TestAJobClaimsWhatIsReserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	r := w.reserveHour(ann, time.Hour, 8)
	require.Equal(t, reservation.OwnJobs, r.ForJobs)
	for range 3 { // the others' jobs have the rest of the pool
		w.submit(bob, jobOf(8, func(c *ledger.JobCommand) { c.Job.MaxRuntime, c.Job.Priority = 20*time.Hour, job.High }))
	}
	w.pass(time.Hour)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	first, second := w.submit(ann, jobOf(2, short(30))), w.submit(ann, jobOf(6, short(30)))
	w.doDueWork()
	require.Equal(t, []job.State{job.Scheduled, job.Scheduled}, w.states([]job.Job{first, second}))
	var claimed []reservation.Reservation
	gpus := 0
	for _, j := range []job.Job{first, second} {
		a := w.readAllocation(w.readJob(j.ID).AllocationID)
		require.Len(t, a.Reservations, 1)
		part := w.readReservation(a.Reservations[0])
		require.Equal(t, reservation.Claimed, part.State())
		require.Equal(t, j.ID, part.JobID, "it says which job claimed it")
		require.Equal(t, j.Shape, part.Shape)
		require.Equal(t, a.RequestedAt, a.ActiveAt, "with zero wait")
		claimed = append(claimed, part)
		gpus += part.Shape.GPUs()
	}
	require.Equal(t, r.Shape.GPUs(), gpus)
	e, err := w.ledger.ExplainJob(t.Context(), ann, first.ID)
	require.NoError(t, err)
	require.Contains(t, e.Summary, claimed[0].ID, "it says by what it started")
}

// Whose jobs claim what: another person's of the organization only what is for all of it, another organization's
// nothing, and nobody's what is for none, or for the job that names it.
func TestWhoClaimsAReservation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		jobs              reservation.ForJobs
		own, mate, others bool
	}{
		"by default":           {"", true, false, false},
		"mine":                 {reservation.OwnJobs, true, false, false},
		"none":                 {reservation.NoJobs, false, false, false},
		"of all of them alike": {reservation.OrganizationJobs, true, true, false},
	} {
		w := newWorld(t)
		ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
		mate := w.newColleague(ann, "ann2")
		for who, claims := range map[*ledger.Actor]bool{&ann: tc.own, &mate: tc.mate, &bob: tc.others} {
			r := w.reserveFor(ann, 0, 8, tc.jobs)
			w.pass(10 * time.Minute)
			j := w.submit(*who, jobOf(8, short(30)))
			w.doDueWork()
			require.Equal(t, claims, w.readReservation(r.ID).JobID == j.ID, "%s, by %s", name, who.KeyID)
			_, err := w.ledger.CancelJob(t.Context(), *who, j.ID)
			require.NoError(t, err)
			w.pass(time.Hour)
		}
	}
}

// A job that names a reservation has it, whoever else would claim it.
func TestWhatAJobNamesNobodyElseClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	r := w.reserveHour(ann, time.Hour, 8)
	named := w.submit(ann, jobIn(r))
	w.pass(time.Hour - time.Second)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	w.submit(ann, jobOf(8, short(10)))
	w.doDueWork()
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	w.pass(2 * time.Second)
	require.Equal(t, named.ID, w.readReservation(r.ID).JobID)
}

// A job that may run longer than its reservation lasts claims it if nobody has reserved the GPUs after it. It is never
// ended early for having claimed.
func TestAClaimLastsAsLongAsItsJob(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"free after it": false, "reserved after it": true} {
		w := newWorld(t)
		ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
		r := w.reserveHour(ann, time.Hour, 8)
		if taken {
			w.reserveHour(bob, 2*time.Hour+time.Minute, 8)
		}
		w.pass(time.Hour)
		j := w.submit(ann, jobOf(8, short(120)))
		w.doDueWork()
		is := w.readReservation(r.ID)
		if taken {
			require.Equal(t, reservation.Ready, is.State(), name)
			require.Equal(t, job.Pending, w.readJob(j.ID).State(), name)
			e, err := w.ledger.ExplainJob(t.Context(), ann, j.ID)
			require.NoError(t, err)
			at := slices.IndexFunc(e.Blockers, func(b ledger.Blocker) bool { return b.Code == "reservation_too_short" })
			require.GreaterOrEqual(t, at, 0, "it says why")
			require.Contains(t, e.Blockers[at].Fix, "--max-runtime 57m", "and what would do")
			continue
		}
		require.Equal(t, j.ID, is.JobID, name)
		a := w.readAllocation(w.readJob(j.ID).AllocationID)
		require.GreaterOrEqual(t, a.LeaseUntil.Sub(a.ActiveAt), 2*time.Hour, name)
	}
}

// What a job leaves of a reservation stays where it is, whatever else is moved to make room for the job.
func TestWhatIsLeftOfAReservationStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	r := w.reserveHour(ann, time.Hour, 4)
	w.pass(time.Hour)
	slots := w.readReservation(r.ID).Slots
	for range 2 { // all nodes are full an hour later
		w.reserveHour(bob, time.Hour+10*time.Minute, 4)
	}
	j := w.submit(ann, jobOf(1, short(20)))
	w.doDueWork()
	require.Equal(t, job.Scheduled, w.readJob(j.ID).State())
	rest := w.readReservation(r.ID)
	require.Equal(t, reservation.Ready, rest.State())
	left := rest.Shape.GPUs()
	w.read(func(reader ledger.Reader) error {
		all, err := reader.Reservations(ledger.Scope{All: true}, ledger.BookingFilter{Live: true}, ledger.Page{})
		for _, other := range all {
			now := other.Window.Contains(w.clock.Now()) // what the job has later is reserved again after it
			if other.OrganizationID == ann.OrganizationID && other.ID != rest.ID && now {
				left += other.Shape.GPUs()
			}
			if other.OrganizationID == ann.OrganizationID {
				require.Subset(t, slots, other.Slots)
			}
		}
		return err
	})
	require.Equal(t, 3, left, "all but what the job has")
}
