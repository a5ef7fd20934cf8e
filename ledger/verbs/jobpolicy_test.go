package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/queue"
	"github.com/forewarm/forewarm/core/scheduler"
	"github.com/forewarm/forewarm/ledger"
)

// Whoever submits faster than they may is refused, until the instant that the refusal names; others are not.
func TestTheRateOfSubmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scheduling.Rate = queue.Rate{Every: time.Minute, Burst: 2, Daily: 3}
	w.ledger = w.restartedLedger()
	ann, bob := w.newSubmitter("ann"), w.newSubmitter("bob")
	held := jobOf(1, func(c *ledger.JobCommand) { c.Held, c.Indices = true, []int{1, 2, 3} })
	refused := func() *ledger.SubmissionRateError {
		_, err := w.ledger.SubmitJobs(t.Context(), ann, held)
		var e *ledger.SubmissionRateError
		require.ErrorAs(t, err, &e)
		return e
	}
	w.submit(ann, held)
	w.submit(ann, held)
	opens := refused().Opens
	require.Equal(t, w.clock.Now().Add(time.Minute), opens)
	w.submit(bob, held)
	w.ledger = w.restartedLedger()
	w.clock.Set(opens.Add(-time.Microsecond))
	refused()
	w.clock.Set(opens)
	w.submit(ann, held)
	w.clock.Set(opens.Add(time.Hour))
	daily := refused()
	require.True(t, daily.Daily)
	w.clock.Set(daily.Opens)
	w.submit(ann, held)
}

// A pool may keep the high priority for those who answer for it.
func TestWhoMaySubmitHighPriority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scheduling.HighPriority = ledger.Admin
	w.ledger = w.restartedLedger()
	ann := w.newSubmitter("ann")
	_, err := w.ledger.SubmitJobs(t.Context(), ann, urgent(1))
	var high *ledger.PriorityError
	require.ErrorAs(t, err, &high)
	w.submit(ann, jobOf(1, nil))
	ann.Role = ledger.Admin
	w.submit(ann, urgent(1))
}

// A tenant with a weight is served as often as that says: a job of equals goes first by what they have had.
func TestOrdersAndWeightsOfAPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scheduling.Pools = map[string]ledger.Scheduling{"lab": {Order: scheduler.Arrival}}
	w.ledger = w.restartedLedger()
	ann := w.newSubmitter("ann")
	w.run(ann, jobOf(8, nil))
	long := w.submit(ann, jobOf(8, func(c *ledger.JobCommand) { c.Job.MaxRuntime = 20 * time.Hour }))
	w.pass(time.Minute)
	short := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) { c.Job.MaxRuntime = time.Minute }))
	first := func() string {
		var all []ledger.QueuedJob
		w.read(func(r ledger.Reader) (err error) {
			all, err = w.ledger.QueueOf(r, w.pool.ID)
			return err
		})
		require.Len(t, all, 2)
		return all[0].ID
	}
	require.Equal(t, long.ID, first())
	w.scheduling.Pools = nil
	w.ledger = w.restartedLedger()
	require.Equal(t, short.ID, first())
}

// Of two people of an organization, whose jobs are alike, the one who had less of the pool is served first; what each
// has had is told with what their organization has.
func TestPeopleOfAnOrganizationShareIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lab := w.newSubmitter("lab")
	ann, bob := w.colleagueOf(lab, "ann"), w.colleagueOf(lab, "bob")
	w.run(ann, jobOf(8, nil))
	w.pass(50 * time.Minute)
	hers, his := w.submit(ann, jobOf(8, nil)), w.submit(bob, jobOf(8, nil))
	w.read(func(r ledger.Reader) error {
		all, err := w.ledger.QueueOf(r, w.pool.ID)
		require.Len(t, all, 2)
		require.Equal(t, his.ID, all[0].ID, "%s came first", hers.ID)
		return err
	})
	why, err := w.ledger.ExplainJob(t.Context(), ann, hers.ID)
	require.NoError(t, err)
	require.Regexp(t, `who submitted it has lately had (many|\d+\.\d) times as much of the pool as the others of`,
		why.Blockers[0].Evidence[1])
	_, shares, err := w.ledger.Shares(t.Context(), ann, "lab")
	require.NoError(t, err)
	require.Len(t, shares, 1)
	require.Len(t, shares[0].Users, 1, "bob has had nothing")
	require.Equal(t, ann.UserID, shares[0].Users[0].UserID)
	require.InDelta(t, shares[0].Share, shares[0].Users[0].Share, 1e-9)
}

// Keys that belong to no person count as one, who has had what no person of the organization had.
func TestKeysOfNobodyShareWithPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.newSubmitter("service")
	ann := w.colleagueOf(service, "ann")
	w.run(service, jobOf(8, nil))
	w.pass(50 * time.Minute)
	its, hers := w.submit(service, jobOf(8, nil)), w.submit(ann, jobOf(8, nil))
	w.read(func(r ledger.Reader) error {
		all, err := w.ledger.QueueOf(r, w.pool.ID)
		require.Len(t, all, 2)
		require.Equal(t, hers.ID, all[0].ID, "%s came first", its.ID)
		return err
	})
	_, shares, err := w.ledger.Shares(t.Context(), ann, "lab")
	require.NoError(t, err)
	require.Len(t, shares[0].Users, 1, "ann has had nothing")
	require.Empty(t, shares[0].Users[0].UserID)
	require.InDelta(t, shares[0].Share, shares[0].Users[0].Share, 1e-9)
}

// colleagueOf is another person of the same organization, who submits jobs.
func (w *world) colleagueOf(who ledger.Actor, name string) ledger.Actor {
	w.Helper()
	person, err := w.ledger.CreateUser(w.Context(), operator, ledger.User{OrganizationID: who.OrganizationID,
		Email: name + "@example.com", Role: ledger.Member})
	require.NoError(w, err)
	made, err := w.ledger.CreateKey(w.Context(), operator, ledger.Key{ID: "key_" + name, Name: name, UserID: person.ID,
		OrganizationID: who.OrganizationID, Kind: ledger.PersonKey, Role: ledger.Member, Hash: []byte(name)})
	require.NoError(w, err)
	who.KeyID, who.UserID = made.ID, person.ID
	return who
}
