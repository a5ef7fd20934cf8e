package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
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
