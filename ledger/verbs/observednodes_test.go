package verbs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// A node with work that uses no GPU, and one that the cluster takes out of use, are not
// what was promised.
func TestAPromiseLeavesANodeThatIsNotIdle(t *testing.T) {
	t.Parallel()
	for _, taken := range []string{node.TakenByWork, node.TakenAway} {
		w := newCluster(t)
		r := w.warm(w.ann, 2)
		w.nodes = []ledger.ObservedNode{{ProviderID: w.nodeOf(r, 0), Taken: taken}}
		w.observe()
		require.Equal(t, reservation.Warming, w.readReservation(r.ID).State())
		w.pass(boot + time.Minute)
		moved := w.readReservation(r.ID)
		require.Equal(t, reservation.Ready, moved.State())
		require.NotEqual(t, r.Slots, moved.Slots)
		var reasons []string
		for _, e := range w.readEvents("reservation.warming") {
			reasons = append(reasons, e.Reason)
		}
		require.Contains(t, reasons, plan.ReasonNodeTaken)

		w.nodes[0].Taken = ""
		w.observe()
		for _, n := range w.readNodes(node.Ready) {
			require.Empty(t, n.Taken)
		}
	}
}

// Work belongs to the pool that keeps its nodes, whatever queue it came from.
func TestWorkBelongsToThePoolThatKeepsItsNodes(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	other := w.otherPool("beside", "sim", "gpu-8")
	r := w.warm(w.ann, 2)
	w.begin("17", "vision", 0, 2, w.nodeOf(r, 0))
	w.work[0].Type = "" // of a partition without an offer
	w.begin("18", "vision", 0, 2, "")
	w.work[1].Type = "gpu-8"
	w.begin("19", "vision", 0, 2, "")
	w.work[2].Type = ""
	require.Equal(t, ledger.Observed{Started: 2, Warm: 1, Claims: 1}, w.observe())
	require.Equal(t, w.pool.ID, w.workOf("17").PoolID)
	require.Len(t, w.workOf("17").Devices, 2)
	require.Equal(t, other.ID, w.workOf("18").PoolID)
	require.Empty(t, w.workOf("19").ID, "it is on none of our nodes")

	w.work[0].Type = "gpu-8" // it is counted where it was met
	require.Zero(t, w.observe())
	require.Equal(t, w.pool.ID, w.workOf("17").PoolID)
}

// otherPool makes another observed pool.
func (w *cluster) otherPool(name, provisioner, kind string) ledger.Pool {
	w.Helper()
	p, err := w.tryPool(name, provisioner, kind)
	require.NoError(w, err)
	return p
}

func (w *cluster) tryPool(name, provisioner, kind string) (ledger.Pool, error) {
	return w.ledger.CreatePool(w.Context(), operator, capacity.Pool{Name: name, Provisioner: provisioner, Type: kind,
		Model: "h100", PerNode: 2, MaxNodes: 4, Observed: true, Holders: capacity.Holders{Default: "bob"},
		Timers: w.pool.Timers}, learned.BootTimes{Prior50: boot, Prior95: boot})
}

func TestASecondPoolOfTheSameNodesIsRefused(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	_, err := w.tryPool("again", "sim", "gpu-2")
	var invalid *ledger.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "instance_type", invalid.Field)
	require.Contains(t, invalid.Rule, "lab")
	require.NotEmpty(t, invalid.Fix)
	w.otherPool("elsewhere", "sim2", "gpu-2")
	p := w.otherPool("beside", "sim", "gpu-8")
	_, err = w.ledger.UpdatePool(t.Context(), operator, p.ID, p.DefinitionVersion,
		func(p *capacity.Pool) { p.Type = "gpu-2" })
	require.ErrorAs(t, err, &invalid)
	require.NoError(t, w.ledger.DeletePool(t.Context(), operator, "lab"))
	w.otherPool("again", "sim", "gpu-2")
}

// Pools are found behind any number of others.
func TestAClusterIsWatchedThoughThereAreManyPools(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	for i := range 500 {
		_, err := w.ledger.CreatePool(t.Context(), operator, capacity.Pool{Name: fmt.Sprintf("p%d", i), Provisioner: "sim",
			Type: "gpu-2", Model: "h100", PerNode: 2, MaxNodes: 1, Timers: w.pool.Timers}, learned.BootTimes{})
		require.NoError(t, err)
	}
	w.otherPool("last", "sim2", "gpu-2")
	watch, err := w.ledger.Watch(t.Context(), "sim2")
	require.NoError(t, err)
	require.True(t, watch.Wanted)
}

// A slot whose node is kept no more is another node's, though the work on the old one goes
// on.
func TestASlotIsFreeWhenItsNodeIsKeptNoMore(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.warm(w.ann, 2)
	w.begin("17", "vision", 0, 2, w.nodeOf(r, 0))
	w.observe()
	require.NotEmpty(t, w.workOf("17").Slots)
	_, err := w.ledger.DrainNode(t.Context(), operator, w.readNodes(node.Ready)[0].ID, "")
	require.NoError(t, err)
	w.doDueWork()
	require.Empty(t, w.readNodes(node.Draining), "the keeping ends, and the work need not")
	w.work[0].Nodes[0].ProviderID = ""
	w.observe()
	a := w.workOf("17")
	require.Equal(t, allocation.Active, a.State())
	require.Empty(t, a.Slots)
	require.Len(t, a.Devices, 2, "what it held stays written down")
	for range 4 {
		w.mustReserve(w.ann, 2, w.windowAfter(boot+2*guard, time.Hour))
	}
	w.pass(boot + 3*guard)
	require.Len(t, w.readNodes(node.Ready), 4)
}

// The rest of a promise costs what was agreed on, whatever nodes cost now.
func TestARestOfAPromiseCostsWhatWasAgreed(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.warm(w.ann, 6)
	p, err := w.ledger.UpdatePool(t.Context(), operator, "lab", w.pool.DefinitionVersion,
		func(p *capacity.Pool) { p.Price *= 10 })
	require.NoError(t, err)
	w.pool = p
	w.begin("17", "vision", 0, 2, w.nodeOf(r, 1))
	w.observe()
	require.Equal(t, r.Cost-r.Cost/3, w.readReservation(r.ID).Cost)
}

// What waits is counted by reason, and what it waited for is remembered until it begins.
func TestWhatWorkWaitedFor(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.waiting = []ledger.ObservedWait{{ID: "17", Type: "gpu-2", Reason: allocation.WaitedLimits},
		{ID: "18", Type: "gpu-2", Reason: allocation.WaitedPriority},
		{ID: "19", Type: "gpu-2", Reason: allocation.WaitedPriority}, {ID: "20", Type: "unknown", Reason: "priority"}}
	w.observe()
	require.Equal(t, []ledger.WaitingWork{
		{PoolID: w.pool.ID, Reason: "limits", Count: 1, IDs: []string{"17"}},
		{PoolID: w.pool.ID, Reason: "priority", Count: 2, IDs: []string{"18", "19"}},
	}, w.watched().Waiting)
	w.clock.Advance(time.Minute)
	w.waiting = w.waiting[1:]
	w.begin("17", "vision", 2*time.Minute, 2, "")
	w.observe()
	a := w.workOf("17")
	require.Equal(t, allocation.WaitedLimits, a.Work.WaitedFor)
	wait, _ := a.Wait()
	require.Zero(t, wait, "it did not wait for a boot")

	w.waiting = nil
	w.begin("18", "vision", 2*time.Minute, 2, "") // given a node that boots
	w.work[1].StartedAt = time.Time{}
	w.observe()
	w.clock.Advance(20 * time.Second)
	w.work[1].StartedAt = w.clock.Now()
	w.observe()
	a = w.workOf("18")
	require.Equal(t, allocation.WaitedPriority, a.Work.WaitedFor)
	wait, _ = a.Wait()
	require.Greater(t, wait, 15*time.Second)
}

// Work that ran before its pool was there is no start to score.
func TestWorkBeforeItsPoolIsNotScored(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.begin("17", "vision", 0, 2, "")
	w.work[0].Type = "gpu-8"
	w.observe()
	w.clock.Advance(time.Hour)
	w.otherPool("later", "sim", "gpu-8")
	w.observe()
	require.Equal(t, allocation.WaitedUnwatched, w.workOf("17").Work.WaitedFor)
}
