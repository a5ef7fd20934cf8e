package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

// clusterWorld is an installation with a pool that is part of a cluster with a scheduler
// of its own. It is 8 o'clock, and at 9 the cluster's users submit a job, as every day.
type clusterWorld struct {
	*world
	cluster *simcluster.Cluster
	pool    ledger.Pool
	other   ledger.Organization // that of the account physics; all other work is the first one's
	nine    time.Time
}

func newClusterWorld(t *testing.T) *clusterWorld {
	t.Helper()
	s := usualSite()
	s.ledger.ObserveEvery, s.ledger.Policy = 30*time.Second, plan.Policy{Guard: 5 * time.Minute}
	w := &clusterWorld{world: buildWorld(t, s)}
	w.clock.Advance(23 * time.Hour)
	w.nine = w.clock.Now().Add(time.Hour)
	var err error
	w.cluster, err = simcluster.New(clusterConfig(), w.clock)
	require.NoError(t, err)
	w.other, err = w.ledger.CreateOrganization(t.Context(), w.actor, "physics", quota.Limits{GPUs: 8})
	require.NoError(t, err)
	w.pool, err = w.ledger.CreatePool(t.Context(), w.actor, capacity.Pool{
		Name: "cluster", Provisioner: "simcluster", Region: "sim-1", Type: "gpu-8", Model: "h100-80g", PerNode: 8,
		MemoryMiB: 81_920, Price: 36 * money.USD, MaxNodes: 4, Simulated: true, Observed: true,
		Timers: capacity.Timers{WarmHold: 5 * time.Minute, IdleRelease: time.Minute, MaxLease: 24 * time.Hour},
		Holders: capacity.Holders{Default: w.actor.OrganizationID,
			Rules: []capacity.HolderRule{{Account: "physics", OrganizationID: w.other.ID}}},
	}, learned.BootTimes{Prior50: time.Minute, Prior95: 2 * time.Minute})
	require.NoError(t, err)
	w.startWorker(parts{cloud: w.cluster})
	return w
}

func clusterConfig() simcluster.Config {
	return simcluster.Config{Seed: 7, SuspendTime: 10 * time.Minute,
		Offers: []simcluster.Offer{{Type: "gpu-8", Model: "h100-80g", GPUs: 8, MemoryMiB: 81_920, Nodes: 4,
			Price: provisioners.Price(36 * money.USD), Boot: simcluster.Boot{P50: time.Minute, P95: 70 * time.Second}}},
		Work: []simcluster.Work{{Job: simcluster.Job{Name: "daily", Account: "vision", Length: 30 * time.Minute},
			Every: 24 * time.Hour, At: 9 * time.Hour}},
	}
}

// reserveDaily reserves a node from 9 to 10, every day.
func (w *clusterWorld) reserveDaily() {
	w.t.Helper()
	_, err := w.ledger.CreateSchedule(w.t.Context(), w.actor, ledger.Schedule{PoolID: w.pool.ID, Name: "daily", GPUs: 8,
		StartLocal: w.nine.Format("2006-01-02T15:04:05"), Timezone: "UTC", RRule: "FREQ=DAILY", Length: time.Hour,
		DSTPolicy: "shift"})
	require.NoError(w.t, err)
}

// awaitPromise reserves daily, and waits until the first node is ready, minutes before nine.
func (w *clusterWorld) awaitPromise() reservation.Reservation {
	w.t.Helper()
	w.reserveDaily()
	w.driveUntil(w.nine.Add(-4 * time.Minute))
	promise := w.promiseOf(w.nine)
	require.Equal(w.t, reservation.Ready, promise.State())
	return promise
}

func (w *clusterWorld) driveUntil(at time.Time) { w.driveFor(at.Sub(w.clock.Now())) }

// promiseOf is the schedule's reservation that begins at the time.
func (w *clusterWorld) promiseOf(at time.Time) reservation.Reservation {
	w.t.Helper()
	for _, r := range readFrom(w.world, func(r ledger.Reader) ([]reservation.Reservation, error) {
		return r.Reservations(w.actor.Scope(), ledger.BookingFilter{}, ledger.Page{Limit: 500})
	}) {
		if r.Window.Start.Equal(at) {
			return r
		}
	}
	require.Fail(w.t, "nothing is reserved")
	return reservation.Reservation{}
}

// starts is the observed work of an organization, in the order in which it was met.
func (w *clusterWorld) starts(organization string) []allocation.Allocation {
	w.t.Helper()
	var found []allocation.Allocation
	for _, a := range readFrom(w.world, func(r ledger.Reader) ([]allocation.Allocation, error) {
		return r.Allocations(ledger.Scope{All: true}, ledger.BookingFilter{}, ledger.Page{Limit: 500})
	}) {
		require.True(w.t, a.Observed())
		if a.OrganizationID == organization {
			found = append(found, a)
		}
	}
	return found
}

// requireScore checks how many starts are counted, and how many of them with zero wait.
func (w *clusterWorld) requireScore(starts, zeroWaits int) {
	w.t.Helper()
	report := readFrom(w.world, func(r ledger.Reader) (ledger.Report, error) {
		return r.Report(ledger.Scope{All: true}, w.nine.Add(-time.Hour), w.clock.Now().Add(time.Hour))
	})
	require.Equal(w.t, []int{starts, zeroWaits}, []int{report.Starts, report.ZeroWaits})
}

// clusterNodes counts the cluster's nodes in a state.
func (w *clusterWorld) clusterNodes(state provisioners.NodeState) (count int) {
	w.t.Helper()
	seen, err := w.cluster.Observe(w.t.Context(), "")
	require.NoError(w.t, err)
	for _, n := range seen.Nodes {
		if n.State == state {
			count++
		}
	}
	return count
}

// A job that a reservation expects starts on the node that was kept warm for it, and is
// its claim. Its user has never heard of Forewarm. The node goes cold afterwards, and
// the next day is the same.
func TestAnExpectedJobStartsWarm(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.reserveDaily()
	w.driveUntil(w.nine.Add(-30 * time.Minute))
	require.Equal(t, 4, w.clusterNodes(provisioners.NodeCold), "a node is warm long before it is needed")
	for day := range 2 {
		at := w.nine.AddDate(0, 0, day)
		w.driveUntil(at.Add(-time.Second))
		require.Equal(t, reservation.Ready, w.promiseOf(at).State())
		require.Equal(t, 1, w.clusterNodes(provisioners.NodeIdle))
		w.driveUntil(at.Add(10 * time.Minute))
		require.Len(t, w.starts(w.actor.OrganizationID), day+1)
		job := w.starts(w.actor.OrganizationID)[day]
		require.Equal(t, allocation.Active, job.State())
		require.Equal(t, at, job.ActiveAt.UTC(), "by the cluster's own time, whenever it was looked at")
		wait, started := job.Wait()
		require.True(t, started)
		require.Zero(t, wait)
		require.Len(t, job.Devices, 8)
		require.Equal(t, []string{w.promiseOf(at).ID}, job.Reservations)
		require.Equal(t, reservation.Claimed, w.promiseOf(at).State())
		w.driveUntil(at.Add(50 * time.Minute))
		require.Equal(t, allocation.Released, w.readAllocation(job.ID).State())
		require.Equal(t, at.Add(30*time.Minute), w.readAllocation(job.ID).EndedAt.UTC())
		require.Equal(t, 4, w.clusterNodes(provisioners.NodeCold), "nobody needs it any more")
		require.Len(t, w.readNodes(), day+1)
	}
	w.requireScore(2, 2)
	require.Empty(t, w.readOrphans(false))
}

// Without a reservation the same job has to wait for a node that boots, and is counted as
// a start that waited.
func TestAJobThatNobodyExpectedIsCounted(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.driveUntil(w.nine.Add(40 * time.Minute))
	require.Empty(t, w.readNodes())
	require.Len(t, w.starts(w.actor.OrganizationID), 1)
	job := w.starts(w.actor.OrganizationID)[0]
	wait, started := job.Wait()
	require.True(t, started)
	require.Greater(t, wait, 30*time.Second)
	require.Less(t, wait, 2*time.Minute)
	require.Empty(t, job.Reservations)
	require.Empty(t, job.Devices)
	require.Equal(t, allocation.Released, job.State())
	w.requireScore(1, 0)
}

// Another organization's job takes the warm node, as it may: the cluster's scheduler
// decides. The promise moves to another node, which is warm in time.
func TestAPromiseMovesWhenAnotherTakesItsNode(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	promise := w.awaitPromise()
	_, err := w.cluster.Submit(simcluster.Job{Name: "other", Account: "physics", GPUs: 1, Length: 2 * time.Hour})
	require.NoError(t, err)
	w.driveUntil(w.nine.Add(-time.Second))
	taken := w.starts(w.other.ID)
	require.Len(t, taken, 1)
	require.Empty(t, taken[0].Reservations, "it is not what the node was kept for")
	wait, _ := taken[0].Wait()
	require.Zero(t, wait)
	moved := w.promiseOf(w.nine)
	require.Equal(t, reservation.Ready, moved.State())
	require.NotEqual(t, promise.Slots, moved.Slots)

	w.driveUntil(w.nine.Add(10 * time.Minute))
	require.Len(t, w.starts(w.actor.OrganizationID), 1)
	job := w.starts(w.actor.OrganizationID)[0]
	require.Equal(t, []string{moved.ID}, job.Reservations)
	w.requireScore(2, 2)
	w.driveUntil(w.nine.Add(3 * time.Hour))
	require.Equal(t, []node.State{node.Gone, node.Gone}, w.nodeStates())
	require.Equal(t, 4, w.clusterNodes(provisioners.NodeCold))
}

// A cluster that was made anew has lost the node that was kept warm, and knows no mark of
// the old one. Another node is warmed, and the cluster is watched all the same.
func TestAClusterThatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.awaitPromise()
	c := clusterConfig()
	c.Seed = 8
	var err error
	w.cluster, err = simcluster.New(c, w.clock)
	require.NoError(t, err)
	w.startWorker(parts{cloud: w.cluster})
	w.driveUntil(w.nine.Add(20 * time.Minute))
	require.Len(t, w.starts(w.actor.OrganizationID), 1)
	job := w.starts(w.actor.OrganizationID)[0]
	require.Equal(t, []string{w.promiseOf(w.nine).ID}, job.Reservations)
	w.requireScore(1, 1)
	require.Len(t, w.readNodes(), 2)
	w.driveUntil(w.nine.Add(3 * time.Hour))
	require.Equal(t, 4, w.clusterNodes(provisioners.NodeCold))
}
