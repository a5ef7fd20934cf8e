package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

// jobAtMinute is a short job of an account at a minute after nine, each day.
func jobAtMinute(name, account string, minute int, length time.Duration) simcluster.Work {
	return simcluster.Work{Job: simcluster.Job{Name: name, Account: account, Length: length}, Every: 24 * time.Hour,
		At: 9*time.Hour + time.Duration(minute)*time.Minute}
}

// endure has a node warm for nine o'clock, and the control plane away from minutes before
// nine until a minute after it. Meanwhile the cluster's users do their work.
func (w *clusterWorld) endure(untilMinute int, work ...simcluster.Work) reservation.Reservation {
	w.t.Helper()
	c := clusterConfig()
	c.Work = work
	var err error
	w.cluster, err = simcluster.New(c, w.clock)
	require.NoError(w.t, err)
	w.startWorker(parts{cloud: w.cluster})
	promise := w.awaitPromise()
	w.clock.Set(w.nine.Add(time.Duration(untilMinute) * time.Minute))
	require.Equal(w.t, 4, w.clusterNodes(provisioners.NodeCold), "the node has long been suspended")
	w.driveFor(10 * time.Minute)
	return promise
}

// The control plane was away for longer than nodes stay up unless they are kept. A job that
// began on its node before that has claimed its promise all the same: whether the
// cluster still says when the node ended or has forgotten it.
func TestAJobClaimsANodeThatIsGoneAfterAnOutage(t *testing.T) {
	t.Parallel()
	for _, back := range []int{20, 45} {
		w := newClusterWorld(t)
		promise := w.endure(back, jobAtMinute("daily", "vision", 0, 5*time.Minute))
		jobs := w.starts(w.actor.OrganizationID)
		require.Len(t, jobs, 1)
		require.Equal(t, allocation.Released, jobs[0].State())
		require.Equal(t, w.nine, jobs[0].ActiveAt.UTC())
		require.Equal(t, []string{promise.ID}, jobs[0].Reservations)
		require.Equal(t, promise.Slots, jobs[0].Slots)
		require.Len(t, jobs[0].Devices, 8)
		require.Equal(t, reservation.Claimed, w.readReservation(promise.ID).State())
		w.requireScore(1, 1)
		w.driveFor(time.Hour)
		require.Equal(t, 4, w.clusterNodes(provisioners.NodeCold), "no node is warmed for what was served")
	}
}

// Small jobs beside each other on a node are what one promise of it was for, also when all
// of them are over before anybody looks.
func TestJobsBesideEachOtherClaimOnceAfterAnOutage(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	_, err := w.ledger.Reserve(t.Context(), w.actor, reserveAt(w, w.nine))
	require.NoError(t, err)
	c := []simcluster.Work{jobAtMinute("one", "vision", 0, 5*time.Minute), jobAtMinute("two", "vision", 1, 5*time.Minute)}
	for i := range c {
		c[i].GPUs = 2
	}
	w.endure(45, c...)
	jobs := w.starts(w.actor.OrganizationID)
	require.Len(t, jobs, 2)
	require.Len(t, jobs[0].Reservations, 1)
	require.Empty(t, jobs[1].Reservations)
	w.requireScore(2, 2)
}

// A job that began after the node was let go claims nothing, even though it did not have
// to wait: the node had been powered up again, and others had waited for that.
func TestAJobClaimsNothingOnceItsNodeWasLetGo(t *testing.T) {
	t.Parallel()
	for _, back := range []int{35, 55} {
		w := newClusterWorld(t)
		promise := w.endure(back, jobAtMinute("boots", "physics", 12, 5*time.Minute),
			jobAtMinute("late", "vision", 20, 3*time.Minute))
		jobs := w.starts(w.actor.OrganizationID)
		require.Len(t, jobs, 1)
		wait, started := jobs[0].Wait()
		require.True(t, started)
		require.Zero(t, wait)
		require.Empty(t, jobs[0].Reservations)
		require.Empty(t, jobs[0].Slots)
		require.NotEqual(t, reservation.Claimed, w.readReservation(promise.ID).State())
		w.requireScore(2, 1)
	}
}

// A node that is kept again by the time that somebody looks was not warm before that.
func TestANodeThatIsKeptAgainWasNotWarmBefore(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	c := clusterConfig()
	c.Work = []simcluster.Work{jobAtMinute("boots", "physics", 12, 5*time.Minute),
		jobAtMinute("late", "vision", 20, 3*time.Minute)}
	cluster, err := simcluster.New(c, w.clock)
	require.NoError(t, err)
	eyes := &blinded{Cluster: cluster}
	w.cluster = cluster
	w.startWorker(parts{cloud: eyes})
	promise := w.awaitPromise()
	w.clock.Set(w.nine.Add(25 * time.Minute))
	eyes.blind.Store(true)
	w.driveFor(2 * time.Minute)
	require.Equal(t, reservation.Ready, w.readReservation(promise.ID).State(), "on the node that the others left")
	eyes.blind.Store(false)
	w.driveFor(5 * time.Minute)
	jobs := w.starts(w.actor.OrganizationID)
	require.Len(t, jobs, 1)
	require.Empty(t, jobs[0].Reservations)
	require.Empty(t, jobs[0].Slots)
	require.Empty(t, jobs[0].Devices)
	require.NotEqual(t, reservation.Claimed, w.readReservation(promise.ID).State())
}

// A promise for which nobody seems to have come is not given up before the cluster was
// looked at as of then; if nobody can look at it, it is in the end.
func TestAPromiseIsNotGivenUpUnseen(t *testing.T) {
	t.Parallel()
	for _, seen := range []bool{true, false} {
		w := newClusterWorld(t)
		eyes := &blinded{Cluster: w.cluster}
		w.startWorker(parts{cloud: eyes})
		promise := w.awaitPromise()
		eyes.blind.Store(true)
		w.driveUntil(w.nine.Add(5*time.Minute + time.Second))
		require.Equal(t, reservation.Ready, w.readReservation(promise.ID).State())
		if eyes.blind.Store(!seen); seen {
			w.driveFor(2 * time.Minute)
			require.Equal(t, reservation.Claimed, w.readReservation(promise.ID).State())
		} else {
			w.driveFor(10 * time.Minute)
			require.Equal(t, reservation.Expired, w.readReservation(promise.ID).State())
		}
	}
}

// reserveAt asks for another node of the pool for an hour.
func reserveAt(w *clusterWorld, at time.Time) ledger.ReserveRequest {
	return ledger.ReserveRequest{Pool: "cluster", GPUs: 8, Class: reservation.Guaranteed,
		Window: windowFrom(at, time.Hour)}
}
