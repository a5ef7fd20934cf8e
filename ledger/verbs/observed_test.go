package verbs_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// cluster is a cluster's own scheduler, beside the world's pool, which is observed.
type cluster struct {
	*world
	ann, bob   ledger.Actor
	work       []ledger.ObservedWork
	waiting    []ledger.ObservedWait
	nodes      []ledger.ObservedNode
	lag        time.Duration // between a look and its report
	more       bool          // the look is one of several that tell of the past
	mark       string        // of the look; empty: another one each time
	lastReport time.Time
}

// newCluster makes a pool of four nodes of two GPUs in which work of the account vision is
// ann's, and all other is bob's.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	w := newWatchlessCluster(t)
	w.observe() // what was there before
	return w
}

// newWatchlessCluster is one that nobody has looked at yet.
func newWatchlessCluster(t *testing.T) *cluster {
	t.Helper()
	w := &cluster{world: newWorld(t)}
	w.ann, w.bob = w.newPerson("ann"), w.newPerson("bob")
	var err error
	w.pool, err = w.ledger.UpdatePool(t.Context(), operator, "lab", w.pool.DefinitionVersion, func(p *capacity.Pool) {
		p.Observed = true
		p.Holders = capacity.Holders{Default: "bob",
			Rules: []capacity.HolderRule{{Account: "vision", OrganizationID: "ann"}}}
	})
	require.NoError(t, err)
	require.Equal(t, w.bob.OrganizationID, w.pool.Holders.Default, "a name has become an id")
	require.NoError(t, w.ledger.EnsureObserving(t.Context(), "sim"))
	return w
}

// begin has the cluster begin work on nodes, "" being one that is not kept warm, after a
// wait in its queue.
func (w *cluster) begin(id, account string, waited time.Duration, gpus int, providerIDs ...string) {
	work := ledger.ObservedWork{Type: "gpu-2", StartedAt: w.clock.Now(), Work: allocation.Work{ID: id,
		WorkOwner: capacity.WorkOwner{Account: account, User: "somebody"}, QueuedAt: w.clock.Now().Add(-waited)}}
	for _, provider := range providerIDs {
		work.Nodes = append(work.Nodes, ledger.WorkNode{ProviderID: provider, GPUs: gpus})
	}
	w.work = append(w.work, work)
}

// end has the cluster end work now.
func (w *cluster) end(id string) {
	for i := range w.work {
		if w.work[i].ID == id {
			w.work[i].EndedAt = w.clock.Now()
		}
	}
}

// observe looks at the cluster once and does what follows.
func (w *cluster) observe() ledger.Observed { return w.observeSome(true) }

func (w *cluster) observeSome(complete bool) ledger.Observed {
	w.Helper()
	w.clock.Advance(time.Second)
	out, err := w.ledger.ReportObserved(w.Context(), w.claimObserving(), ledger.Observation{Provisioner: "sim",
		At: w.clock.Now().Add(-w.lag), SeenAt: w.clock.Now().Add(-w.lag), Mark: cmp.Or(w.mark, w.clock.Now().String()),
		Complete: complete, More: w.more,
		Work: slices.Clone(w.work), Waiting: w.waiting, Nodes: w.nodes})
	require.NoError(w, err)
	w.lastReport = w.clock.Now()
	w.doDueWork()
	return out
}

// claimObserving claims the one task that looks at the cluster.
func (w *cluster) claimObserving() ledger.Guard {
	w.Helper()
	for range 100 {
		due, err := w.ledger.Dispatch(w.Context(), 100, time.Minute)
		require.NoError(w, err)
		for _, task := range due {
			task, err = w.ledger.ClaimTask(w.Context(), task.ID, task.Attempt, time.Hour)
			require.NoError(w, err)
			if task.Kind == ledger.TaskObserve {
				return ledger.Guard{TaskID: task.ID, Fence: task.Fence}
			}
			require.NoError(w, w.handleTask(task), task.Kind)
		}
		next, err := w.ledger.NextTask(w.Context())
		require.NoError(w, err)
		if next.After(w.clock.Now()) {
			w.clock.Set(next)
		}
	}
	require.Fail(w, "the cluster is not looked at")
	return ledger.Guard{}
}

// pass lets time go by, looking at the cluster whenever that is due.
func (w *cluster) pass(d time.Duration) {
	w.Helper()
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); {
		w.observe()
	}
}

// workOf reads the allocation that stands for work.
func (w *cluster) workOf(id string) (found allocation.Allocation) {
	w.Helper()
	w.read(func(r ledger.Reader) error {
		all, err := r.Allocations(ledger.Scope{All: true}, ledger.BookingFilter{}, ledger.Page{Limit: 500})
		for _, a := range all {
			if a.Work.ID == id {
				require.Empty(w, found.ID, "work is counted once")
				found = a
			}
		}
		return err
	})
	return found
}

// warm reserves nodes for somebody that are ready now, and returns the promise.
func (w *cluster) warm(by ledger.Actor, gpus int) reservation.Reservation {
	w.Helper()
	r := w.mustReserve(by, gpus, w.windowAfter(boot+2*guard, time.Hour))
	w.pass(boot + 3*guard)
	r = w.readReservation(r.ID)
	require.Equal(w, reservation.Ready, r.State())
	return r
}

// nodeOf is the provider's id of the node on one of a promise's slots.
func (w *cluster) nodeOf(r reservation.Reservation, i int) string {
	w.Helper()
	for _, n := range w.readNodes(node.Ready) {
		if n.Slot == r.Slots[i] {
			return n.ProviderID
		}
	}
	require.Fail(w, "no node is ready there")
	return ""
}

func TestWorkOnAWarmNodeIsTheClaim(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.warm(w.ann, 1)
	require.Equal(t, capacity.Shape{Nodes: 1, PerNode: 2}, r.Shape, "a promise is of whole nodes")
	w.clock.Advance(3 * time.Second)
	w.begin("17", "vision", 2*time.Second, 1, w.nodeOf(r, 0))
	require.Equal(t, ledger.Observed{Started: 1, Warm: 1, Claims: 1}, w.observe())

	a := w.workOf("17")
	require.Equal(t, allocation.Active, a.State())
	require.Equal(t, w.ann.OrganizationID, a.OrganizationID)
	require.Equal(t, []string{r.ID}, a.Reservations)
	require.Len(t, a.Devices, 1)
	require.True(t, a.LeaseUntil.IsZero(), "it has no lease")
	wait, waited := a.Wait()
	require.True(t, waited)
	require.Equal(t, 2*time.Second, wait)
	require.Equal(t, reservation.Claimed, w.readReservation(r.ID).State())

	require.Zero(t, w.observe(), "the same again changes nothing")
	w.pass(3 * time.Hour)
	require.Equal(t, allocation.Active, w.workOf("17").State(), "nothing ends it but its own end")
	require.Len(t, w.readNodes(node.Ready), 1, "its node is kept for as long")

	w.end("17")
	require.Equal(t, ledger.Observed{Ended: 1}, w.observe())
	require.Equal(t, allocation.Released, w.workOf("17").State())
	w.pass(w.pool.Timers.IdleRelease + time.Minute)
	require.Empty(t, w.readNodes(node.Ready), "then nobody needs it")
}

func TestWorkElsewhereIsCountedAndClaimsNothing(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.warm(w.ann, 2)
	w.begin("17", "vision", 0, 2, "")
	w.begin("18", "vision", 0, 2, w.nodeOf(r, 0), "") // a gang with one warm node
	require.Equal(t, ledger.Observed{Started: 2}, w.observe())
	require.Empty(t, w.workOf("17").Slots)
	require.Empty(t, w.workOf("18").Reservations)
	require.NotEqual(t, reservation.Claimed, w.readReservation(r.ID).State())
}

func TestAPromiseIsClaimedNodeByNode(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.warm(w.ann, 5)
	require.Equal(t, capacity.Shape{Nodes: 3, PerNode: 2}, r.Shape)
	w.begin("17", "vision", 0, 2, w.nodeOf(r, 1))
	require.Equal(t, ledger.Observed{Started: 1, Warm: 1, Claims: 1}, w.observe())
	part := w.readReservation(w.workOf("17").Reservations[0])
	require.Equal(t, reservation.Claimed, part.State())
	require.Equal(t, []int{r.Slots[1]}, part.Slots)
	rest := w.readReservation(r.ID)
	require.Equal(t, reservation.Ready, rest.State())
	require.Equal(t, capacity.Shape{Nodes: 2, PerNode: 2}, rest.Shape)
	require.Equal(t, []int{r.Slots[0], r.Slots[2]}, rest.Slots)

	w.begin("18", "vision", 0, 2, w.nodeOf(rest, 0), w.nodeOf(rest, 1))
	require.Equal(t, ledger.Observed{Started: 1, Warm: 1, Claims: 1}, w.observe())
	require.Equal(t, reservation.Claimed, w.readReservation(r.ID).State())
}

func TestSmallJobsOnOneNodeClaimOneNode(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.warm(w.ann, 6)
	for i := range 2 {
		w.begin(fmt.Sprint(17+i), "vision", 0, 1, w.nodeOf(r, 0))
	}
	require.Equal(t, ledger.Observed{Started: 2, Warm: 2, Claims: 1}, w.observe())
	require.Equal(t, r.Slots[1:], w.readReservation(r.ID).Slots)
}

func TestWorkThatWaitsForABootIsAMiss(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.mustReserve(w.ann, 2, w.windowAfter(time.Minute, time.Hour)) // too soon to be kept
	w.doDueWork()
	began := w.clock.Now()
	w.begin("17", "vision", 0, 2, "")
	w.work[0].StartedAt = time.Time{}
	require.Zero(t, w.observe())
	require.Equal(t, allocation.Pending, w.workOf("17").State())
	w.pass(2 * time.Minute)
	w.work[0].StartedAt = w.clock.Now()
	require.Equal(t, ledger.Observed{Started: 1}, w.observe())
	wait, _ := w.workOf("17").Wait()
	require.Equal(t, w.work[0].StartedAt.Sub(began), wait, "from when it was queued, by the cluster's own times")
	require.NotEqual(t, reservation.Claimed, w.readReservation(r.ID).State())
}

func TestOtherWaitsAreNotBoots(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.observe()
	w.begin("17", "vision", time.Hour, 2, "")
	w.observe()
	a := w.workOf("17")
	wait, _ := a.Wait()
	require.Zero(t, wait, "looks before have seen it wait without a node")
	require.Equal(t, "queue", a.Work.WaitedFor)
	require.Equal(t, time.Hour, a.ActiveAt.Sub(a.Work.QueuedAt))

	w.begin("18", "vision", 0, 2, "")
	w.work[1].StartedAt = time.Time{}
	w.observe()
	w.end("18")
	require.Equal(t, ledger.Observed{Ended: 1}, w.observe())
	require.Equal(t, allocation.Cancelled, w.workOf("18").State(), "it gave up")
}

// What comes after a look, and before it is reported, has waited for a boot all the same.
func TestASlowLookHidesNoWait(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.lag = 5 * time.Second
	w.observe()
	w.lag = 0
	w.begin("17", "vision", 3*time.Second, 2, "")
	w.work[0].StartedAt = time.Time{}
	w.observe()
	a := w.workOf("17")
	require.Equal(t, a.Work.QueuedAt, a.RequestedAt)
	require.Empty(t, a.Work.WaitedFor)

	w.begin("18", "vision", 0, 2, "")
	w.work[1].StartedAt = time.Time{}
	hidden := w.work
	w.work = hidden[:1]
	w.observeSome(false)
	w.clock.Advance(time.Minute)
	w.work = hidden
	w.observe()
	a = w.workOf("18")
	require.Equal(t, a.Work.QueuedAt, a.RequestedAt, "a look that was not complete has not seen it wait")
}

func TestWhatWasThereBeforeIsNotScored(t *testing.T) {
	t.Parallel()
	w := newWatchlessCluster(t)
	w.begin("17", "vision", time.Hour, 2, "")
	w.begin("18", "vision", time.Hour, 2, "")
	w.work[1].StartedAt = time.Time{}
	require.Equal(t, ledger.Observed{Started: 1}, w.observe())
	w.work[1].StartedAt = w.clock.Now()
	require.Equal(t, ledger.Observed{Started: 1}, w.observe())
	score := func() (report ledger.Report) {
		w.read(func(r ledger.Reader) (err error) {
			report, err = r.Report(ledger.Scope{All: true}, time.Unix(0, 0), w.clock.Now().Add(time.Hour))
			return err
		})
		return report
	}
	require.Zero(t, score().Starts)
	require.Empty(t, w.workOf("17").Reservations)
	w.begin("19", "vision", 0, 2, "")
	w.observe()
	require.Equal(t, 1, score().Starts)
}

func TestAPromiseMovesFromANodeThatOthersTook(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.warm(w.ann, 2)
	taken := r.Slots[0]
	w.begin("17", "physics", 0, 1, w.nodeOf(r, 0))
	require.Equal(t, ledger.Observed{Started: 1, Warm: 1}, w.observe(), "it is bob's, and not what ann was promised")
	require.Equal(t, reservation.Warming, w.readReservation(r.ID).State())
	w.pass(boot + time.Minute)
	moved := w.readReservation(r.ID)
	require.Equal(t, reservation.Ready, moved.State())
	require.NotEqual(t, taken, moved.Slots[0])
	var reasons []string
	for _, e := range w.readEvents("reservation.warming") {
		reasons = append(reasons, e.Reason)
	}
	require.Contains(t, reasons, plan.ReasonNodeTaken)
}

func TestWhatAnObservationLeavesOut(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.begin("17", "physics", 0, 2, "")
	w.observe()
	w.work = nil
	require.Zero(t, w.observeSome(false), "an incomplete one proves nothing")
	require.Equal(t, ledger.Observed{Ended: 1}, w.observe())
	w.begin("18", "physics", 0, 2, "")
	w.end("18")
	require.Equal(t, ledger.Observed{Started: 1, Ended: 1}, w.observe(), "it came and went between two looks")
	require.Zero(t, w.observe(), "and is told of twice")
}

// A node that the cluster's own work had booted is ready at once when it is taken into
// keeping, which tells nothing of boots.
func TestANodeThatWasUpTeachesNoBoot(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.booted = time.Second
	w.warm(w.ann, 2)
	w.read(func(r ledger.Reader) error {
		p, err := r.Pool("lab")
		require.Empty(t, p.Boot.Seen)
		return err
	})
	w.booted = 4 * boot
	w.mustReserve(w.ann, 6, w.windowAfter(time.Minute, 2*time.Hour))
	w.pass(5 * boot)
	w.read(func(r ledger.Reader) error {
		p, err := r.Pool("lab")
		require.NotEmpty(t, p.Boot.Seen)
		return err
	})
}
