package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
)

// Who asked again and again until there was room has waited once, from the first time on, and came
// when there was: it is learned from as anybody else's arrival is.
func TestTheWaitForRoomCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.pass(time.Minute)
	req := ledger.AllocateRequest{Pool: "lab", GPUs: 4, Lease: time.Hour, Waited: 10 * time.Minute}
	a, err := w.ledger.Allocate(t.Context(), ann, req)
	require.NoError(t, err)
	asked := w.clock.Now().Add(-10 * time.Minute)
	require.Equal(t, asked, a.RequestedAt)
	w.pass(3 * time.Hour)
	a = w.readAllocation(a.ID)
	require.Equal(t, asked.Add(10*time.Minute).Add(boot), a.ActiveAt)
	waited, _ := a.Wait()
	require.Equal(t, 10*time.Minute+boot, waited)
	var report ledger.Report
	var p ledger.Pool
	w.read(func(r ledger.Reader) (err error) {
		if p, err = r.Pool(w.pool.ID); err != nil {
			return err
		}
		report, err = r.Report(ledger.Scope{All: true}, monday, w.clock.Now())
		return err
	})
	require.Equal(t, 1, report.Starts)
	require.Equal(t, waited, report.WaitTotal)
	taken := 0.0
	for _, nodes := range p.Arrivals.Taken {
		taken += nodes
	}
	require.InDelta(t, 2, taken, 0.01)
}

// A warm node after a wait for room is no zero wait.
func TestAWarmNodeAfterAWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	w.warmNodes(1)
	for waited, zero := range map[time.Duration]bool{0: true, 5 * time.Second: true, 6 * time.Second: false} {
		a, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Waited: waited})
		require.NoError(t, err)
		got, served := a.Wait()
		require.True(t, served)
		require.Equal(t, zero, got <= allocation.ZeroWait, waited)
		_, err = w.ledger.Release(t.Context(), ann, a.ID)
		require.NoError(t, err)
	}
	for _, bad := range []time.Duration{-time.Second, 30*24*time.Hour + time.Second} {
		_, err := w.ledger.Allocate(t.Context(), ann, ledger.AllocateRequest{Pool: "lab", GPUs: 1, Waited: bad})
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "waited_seconds", invalid.Field)
	}
}
