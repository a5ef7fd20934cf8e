package allocation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func TestTheLeaseCountsFromActivation(t *testing.T) {
	t.Parallel()
	window := calendar.Interval{Start: now, End: now.Add(2 * time.Hour)}
	a := allocation.New(allocation.Allocation{
		ID: "a", Lease: time.Hour, Window: window, Shape: capacity.Shape{Nodes: 1, PerNode: 4}, Slots: []int{2},
	}, now)
	require.Equal(t, allocation.Pending, a.State())
	require.Equal(t, calendar.Booking{ID: "a", Interval: window, Slots: []int{2}, GPUs: 4}, a.Booking())
	_, served := a.Wait()
	require.False(t, served)
	require.True(t, a.LeaseUntil.IsZero())

	ready := now.Add(3 * time.Minute)
	a, err := a.Apply(allocation.Activate, "nodes_ready", ready)
	require.NoError(t, err)
	require.Equal(t, ready.Add(time.Hour), a.LeaseUntil)
	wait, served := a.Wait()
	require.True(t, served)
	require.Equal(t, 3*time.Minute, wait)
	require.True(t, a.Live())

	a, err = a.Apply(allocation.Release, "asked", ready.Add(time.Minute))
	require.NoError(t, err)
	require.True(t, a.Live(), "it still gives its GPUs back")
	require.True(t, a.EndedAt.IsZero())
	a, err = a.Apply(allocation.Finish, "asked", ready.Add(2*time.Minute))
	require.NoError(t, err)
	require.False(t, a.Live())
	require.Equal(t, ready.Add(2*time.Minute), a.EndedAt)
}

func TestWhoGivesUpWasNotServed(t *testing.T) {
	t.Parallel()
	a := allocation.New(allocation.Allocation{ID: "a"}, now)
	a, err := a.Apply(allocation.Cancel, "asked", now.Add(time.Minute))
	require.NoError(t, err)
	_, served := a.Wait()
	require.False(t, served)
}

// Who asked before there was room has waited since then, and entered when there was.
func TestWhoAskedBefore(t *testing.T) {
	t.Parallel()
	a := allocation.New(allocation.Allocation{ID: "a", RequestedAt: now.Add(-time.Hour),
		Window: calendar.Interval{Start: now, End: now.Add(time.Hour)}}, now)
	a, err := a.Apply(allocation.Activate, "nodes_ready", now.Add(time.Minute))
	require.NoError(t, err)
	waited, served := a.Wait()
	require.True(t, served)
	require.Equal(t, 61*time.Minute, waited)
	require.Equal(t, now, a.EnteredAt())
	a.Work.ID = "17"
	require.Equal(t, now.Add(-time.Hour), a.EnteredAt(), "work that was placed elsewhere has no place of ours")
}

func TestAWaitThatNobodyNotices(t *testing.T) {
	t.Parallel()
	require.Equal(t, 5*time.Second, allocation.ZeroWait)
}

func TestOnlyKnownStatesAreRestored(t *testing.T) {
	t.Parallel()
	for _, s := range allocation.Machine.States {
		a, err := allocation.Restore(allocation.Allocation{ID: "a"}, s)
		require.NoError(t, err)
		require.Equal(t, s, a.State())
	}
	_, err := allocation.Restore(allocation.Allocation{ID: "a"}, "asleep")
	require.ErrorContains(t, err, `allocation a: unknown state "asleep"`)
}

func TestWorkIsCalledWhatItsUsersKnow(t *testing.T) {
	t.Parallel()
	for id, label := range map[string]string{"17@1795468764": "17", "17_3@1795468764": "17_3", "a@b": "a@b",
		"lab/train-0": "lab/train-0", "17@": "17@", "": ""} {
		require.Equal(t, label, allocation.Work{ID: id}.Label())
	}
}
