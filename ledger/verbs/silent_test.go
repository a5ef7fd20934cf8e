package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// newDaemons is a world in which all nodes are up, and have daemons that say that they are there.
func newDaemons(t *testing.T) *world {
	w := newWorld(t)
	w.warmNodes(4)
	w.joinedDaemons()
	w.silent = map[string]bool{}
	return w
}

func (w *world) blockerOf(who ledger.Actor, id, code string) (found ledger.Blocker) {
	w.Helper()
	why, err := w.ledger.ExplainJob(w.Context(), who, id)
	require.NoError(w, err)
	for _, b := range why.Blockers {
		if b.Code == code {
			found = b
		}
	}
	return found
}

// A job goes to nodes whose daemons are there, and waits where they are not.
func TestJobsStayOffNodesWhoseDaemonsAreSilent(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	ann := w.newSubmitter("ann")
	for slot := range 3 {
		w.silent[w.nodeOnSlot(slot).ID] = true
	}
	since := w.clock.Now()
	w.pass(3 * time.Minute)
	first := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	require.Equal(t, []int{3}, w.slotsOf(first.ID))
	second := w.submit(ann, jobOf(2, nil))
	gang := w.submit(ann, jobOf(0, aGang))
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(second.ID).State(), "others are free, and nobody would start it there")
	says := w.blockerOf(ann, second.ID, ledger.WaitsForDaemon)
	require.Equal(t, "No job starts on 3 nodes of its pool: no daemon is there, and daemons start jobs.", says.Message)
	require.Len(t, says.Evidence, 3)
	require.Contains(t, says.Evidence, "the daemon of node "+w.nodeOnSlot(0).ID+" has been silent since "+
		ledger.FormatTimeSeen(since, w.clock.Now()))
	queue := w.queue()
	require.Equal(t, ledger.WaitsForGPUs, queue[0].Code, "the first has them")
	require.Equal(t, gang.ID, queue[1].ID)
	require.Equal(t, ledger.WaitsForDaemon, queue[1].Code, "one node of the two that it needs has a daemon")
	require.Contains(t, queue[1].Detail, "has been silent since "+ledger.FormatTimeSeen(since, w.clock.Now())+
		", and of 2 other nodes, too")
	require.Equal(t, "no daemon is there that would start it", queue[1].Unpredicted)
	require.Nil(t, queue[1].Start)
	require.Contains(t, w.blockerOf(ann, gang.ID, ledger.WaitsForDaemon).Message, "It waits for a daemon that starts it: ")

	w.silent = nil
	w.beat(w.joined[w.nodeOnSlot(1).ID])
	w.doDueWork()
	require.Equal(t, []int{1}, w.slotsOf(second.ID), "it begins with the first word of a daemon")
}

// Of what runs where a daemon is silent nobody says that it has ended: no start is predicted from that.
func TestNoStartIsPredictedFromWhatASilentDaemonHas(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	ann := w.newSubmitter("ann")
	w.teach(ann, "train", 10*time.Minute)
	w.runWarm(ann, named("train", 8))
	waits := w.submit(ann, named("train", 8))
	w.pass(time.Minute)
	require.NotNil(t, w.queue()[0].Start)
	for _, n := range w.readNodes(node.Ready)[:1] {
		w.silent[n.ID] = true
	}
	w.pass(3 * time.Minute)
	require.Equal(t, waits.ID, w.queue()[0].ID)
	require.Nil(t, w.queue()[0].Start)
}

// Daemons of nodes that have been up for long and have none do not come by themselves.
func TestJobsStayOffNodesThatNeverHadADaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	w.warmNodes(4)
	w.joined = map[string]ledger.Actor{}
	has := w.nodeOnSlot(2).ID
	w.joined[has] = w.lookAt(has).daemon
	first := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	require.Equal(t, []int{2}, w.slotsOf(first.ID), "the one that is there comes before those that may come")
	by := w.newPerson("by hand")
	held := w.mustAllocate(by, 6)
	w.pass(ledger.JoinWithin + time.Minute)
	_, err := w.ledger.Release(t.Context(), by, held.ID)
	require.NoError(t, err)
	second := w.submit(ann, jobOf(2, nil))
	w.doDueWork()
	require.Equal(t, job.Pending, w.readJob(second.ID).State())
	require.Contains(t, w.blockerOf(ann, second.ID, ledger.WaitsForDaemon).Evidence,
		"no daemon has ever joined of node "+w.nodeOnSlot(0).ID)
}

// placed is a job that has GPUs of a node whose daemon has just fallen silent.
func (w *world) placed(who ledger.Actor, c ledger.JobCommand) (job.Job, string) {
	w.Helper()
	j := w.submit(who, c)
	w.doDueWork()
	is := w.readJob(j.ID)
	require.Equal(w, job.Scheduled, is.State())
	on := w.readAllocation(is.AllocationID).Devices[0].NodeID
	w.silent[on] = true
	return is, on
}

// A daemon that falls silent just before a job is placed there never hears of it: the job begins elsewhere.
func TestAJobThatASilentDaemonDoesNotKnowIsPlacedAnew(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	ann := w.newSubmitter("ann")
	j, on := w.placed(ann, jobOf(2, func(c *ledger.JobCommand) { c.Job.Retries = job.Retries{} }))
	w.pass(2*time.Minute - time.Second)
	require.Equal(t, 1, w.readJob(j.ID).Attempt)
	w.pass(2 * time.Second)
	is := w.readJob(j.ID)
	require.Equal(t, job.Scheduled, is.State(), "as soon as the daemon counts as silent, with nothing else that happens")
	require.Equal(t, 2, is.Attempt)
	require.Zero(t, is.Losses, "it has lost nothing")
	require.Equal(t, j.EligibleAt, is.EligibleAt)
	require.NotEqual(t, on, w.readAllocation(is.AllocationID).Devices[0].NodeID)
	told := w.readEvents("job.pending")
	require.Equal(t, "no daemon of node "+on+" is there that would start it, and none was told to",
		told[len(told)-1].Message)

	w.silent = map[string]bool{}
	w.beatAll()
	require.Empty(t, w.orders(w.joined[on]), "the daemon that comes back has nothing to start")
}

// Whether what a silent daemon was told to start runs there is not known: it begins nowhere else.
func TestAJobThatASilentDaemonMayRunBeginsNowhereElse(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	ann := w.newSubmitter("ann")
	j, on := w.placed(ann, jobOf(2, nil))
	told := w.orders(w.joined[on])
	require.Len(t, told, 1, "the answer may be lost, or what the daemon says of it")
	w.pass(20 * time.Minute)
	is := w.readJob(j.ID)
	require.Equal(t, job.Scheduled, is.State())
	require.Equal(t, 1, is.Attempt)
	says := w.blockerOf(ann, j.ID, "no_daemon")
	require.Contains(t, says.Message,
		"was told to start it and has said nothing since: whether it runs there is not known")
	require.Equal(t, "forewarm jobs requeue "+j.ID, says.Fix)

	w.silent = map[string]bool{}
	w.report(w.joined[on], told[0], nil)
	require.Equal(t, job.Running, w.readJob(j.ID).State(), "it had begun")
}

// Of several pools the job goes to one whose nodes have daemons.
func TestAJobThatASilentDaemonDoesNotKnowMovesToAnotherPool(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	ann := w.newSubmitter("ann")
	dear := w.addPool("dear", 9*money.USD, nil)
	by := w.mustAllocate(w.newPerson("by hand"), 6)
	require.Len(t, by.Slots, 3)
	j, _ := w.placed(ann, anywhere(2, nil))
	w.pass(3 * time.Minute)
	is := w.readJob(j.ID)
	require.Equal(t, job.Scheduled, is.State())
	require.Equal(t, dear.ID, is.PoolID)
}

// Nobody is said to have been told what no daemon has heard.
func TestAnEndThatNoDaemonKnowsIsNotSaidToBeTold(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	ann := w.newSubmitter("ann")
	r := w.runWarm(ann, jobOf(2, nil))
	on := r.orders[0].Allocation.Devices[0].NodeID
	since := w.clock.Now()
	w.silent[on] = true
	w.pass(3 * time.Minute)
	w.mustCancel(ann, r.ID)
	why, err := w.ledger.ExplainJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.Contains(t, why.Summary, "the daemon of its node, which said something last at "+
		ledger.FormatTimeSeen(since, w.clock.Now())+", has not heard that: nothing was told TERM there yet.")
	require.Contains(t, why.Summary, "at the latest its GPUs are taken, and it is cancelled")
	unheard, is := []string(nil), w.readJob(r.ID)
	w.read(func(reader ledger.Reader) (err error) {
		unheard, err = w.ledger.UnheardBy(reader, is)
		return err
	})
	require.Equal(t, []string{on}, unheard)

	w.clock.Set(w.clock.Now().Add(time.Second))
	w.beat(w.joined[on])
	why, err = w.ledger.ExplainJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.Contains(t, why.Summary, "It is ending: it was told TERM")
}

// Who allocates by hand gets nodes whose daemon has fallen silent only where there is nothing else; a node that never
// had a daemon is as good as any.
func TestAllocationsGetSilentNodesLast(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	ann := w.newPerson("ann")
	for slot := range 2 {
		w.silent[w.nodeOnSlot(slot).ID] = true
	}
	w.pass(3 * time.Minute)
	for _, slot := range []int{2, 3, 0, 1} {
		require.Equal(t, []int{slot}, w.mustAllocate(ann, 2).Slots)
	}

	bare := newWorld(t)
	bare.warmNodes(2)
	bare.pass(time.Hour)
	bob := bare.newPerson("bob")
	require.Equal(t, []int{0}, bare.mustAllocate(bob, 2).Slots)
}

// A daemon hears of an end at once, and says so with its next report: until it counts as silent, it has heard.
func TestAnEndIsSaidToBeToldWhereTheDaemonIsNotSilent(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	ann := w.newSubmitter("ann")
	r := w.runWarm(ann, jobOf(2, nil))
	w.clock.Set(w.clock.Now().Add(ledger.SilentAfter / 2)) // after the daemon's last word
	w.mustCancel(ann, r.ID)
	why, err := w.ledger.ExplainJob(t.Context(), ann, r.ID)
	require.NoError(t, err)
	require.Contains(t, why.Summary, "It is ending: it was told TERM, and gets KILL 30s after TERM.")
}

// Of a job whose time is over it is said what its daemon does about it.
func TestAJobWhoseTimeIsOverIsSaidToBeTold(t *testing.T) {
	t.Parallel()
	w := newDaemons(t)
	ann := w.newSubmitter("ann")
	r := w.runWarm(ann, jobOf(2, func(c *ledger.JobCommand) { c.Job.MaxRuntime = time.Minute }))
	explain := func() string {
		why, err := w.ledger.ExplainJob(t.Context(), ann, r.ID)
		require.NoError(t, err)
		return why.Summary
	}
	require.Contains(t, explain(), "It runs, and ends by itself or is told TERM 1m after its start, and gets KILL 30s")
	w.clock.Set(w.readJob(r.ID).StartedAt.Add(time.Minute + time.Second))
	require.Regexp(t, "^Its time of 1m was over at .*: it was told TERM, and gets KILL 30s after that", explain())
}
