package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/core/scheduler"
)

// Whoever could not start because of somebody else's promise is looked at again once that is kept elsewhere,
// also if it is promised a start itself.
func TestAPromiseIsLookedAtAgainAfterAnotherWasKept(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Order: scheduler.Arrival, Classes: levels, Promises: 2}, 2)
	submit(t, s, want("stays", 2, 9), want("ends", 2, 5), want("all", 4, 4))
	require.Len(t, s.Cycle(noon).Starts, 3)
	submit(t, s, want("small", 2, 1))
	require.Equal(t, noon.Add(hours(4)), s.Cycle(noon).Promised[0].From, "where the large one ends")
	submit(t, s, want("large", 4, 9, class("high")))
	require.Equal(t, noon.Add(hours(5)), s.Cycle(noon).Promised[0].From, "after the small one")
	hour := noon.Add(time.Hour)
	require.True(t, s.Finish("ends", hour))
	require.True(t, s.Finish("all", hour))
	d := s.Cycle(hour)
	require.Equal(t, []string{"small", "large"}, started(d))
	require.Empty(t, d.Promised, "both are kept")
	require.Empty(t, d.Blocked)
}

func aPart(j *scheduler.Job) { j.Request.Part = placement.Part{MemoryMiB: 300, Compute: 300} }

// A part of a GPU for which others leave is promised that GPU: nobody else takes it, and other promises on the
// node do not keep it from starting there in time.
func TestOthersLeaveForAPart(t *testing.T) {
	t.Parallel()
	s, err := scheduler.New(leavingPolicy(), []placement.Node{{ID: "n0",
		Kind: placement.Kind{GPUs: 4, MemoryMiB: 1000, Shared: true}}})
	require.NoError(t, err)
	submit(t, s, want("stays", 1, 9, aPart), want("leaves", 1, 9, aPart, keepsWork), want("whole", 3, 9))
	require.Len(t, s.Cycle(noon).Starts, 3)
	hour := noon.Add(time.Hour)
	submit(t, s, want("x", 1, 7, aPart, class("high"), submitted(1)))
	d := s.Cycle(hour)
	require.Equal(t, []string{"leaves"}, victims(d.Plans[0]))
	require.Equal(t, placement.Placement{{Node: "n0", GPUs: 1, Devices: 1}}, d.Promised[0].Spots)
	submit(t, s, want("large", 4, 6, class("high"), submitted(1)),
		want("thief", 1, 1, aPart, class("high"), submitted(0.5)))
	require.Equal(t, noon.Add(hours(9)), s.Cycle(hour).Promised[0].From)
	leaveBy := hour.Add(5 * time.Minute)
	require.True(t, s.Requeue("leaves", leaveBy, time.Time{}))
	require.Equal(t, []string{"x"}, started(s.Cycle(leaveBy)))
}

// twoPromised returns a scheduler with two jobs of a tenant that are promised two GPUs each in an hour.
func twoPromised(t *testing.T) *scheduler.Scheduler {
	t.Helper()
	s := newScheduler(t, scheduler.Policy{Promises: 2}, 1)
	submit(t, s, want("running", 4, 1, of("b")))
	s.Cycle(noon)
	submit(t, s, want("1", 2, 1), want("2", 2, 1))
	require.Len(t, s.Cycle(noon).Promised, 2)
	return s
}

// Promises that are together over a limit that fell are kept one after the other, and those that are over it
// alone are taken back.
func TestALimitFalls(t *testing.T) {
	t.Parallel()
	limited := func(most int) scheduler.Policy {
		return scheduler.Policy{Promises: 2, Tenants: map[string]scheduler.Tenant{"a": {MostGPU: most}}}
	}
	hour := noon.Add(time.Hour)
	s, err := scheduler.Restore(limited(3), twoPromised(t).Snapshot())
	require.NoError(t, err)
	require.True(t, s.Finish("running", hour))
	d := s.Cycle(hour)
	require.Equal(t, []string{"1"}, started(d))
	require.Equal(t, scheduler.TenantLimit, d.Blocked[0].Blocker)
	require.True(t, s.Finish("1", hour))
	require.Equal(t, []string{"2"}, started(s.Cycle(hour)))
	s, err = scheduler.Restore(limited(1), twoPromised(t).Snapshot())
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2"}, s.Cycle(noon).Broken)
}

// Others leave only for as many jobs of a tenant as its limit lets start.
func TestNobodyLeavesBeyondALimit(t *testing.T) {
	t.Parallel()
	p := leavingPolicy()
	p.Promises, p.Tenants = 0, map[string]scheduler.Tenant{"a": {MostGPU: 3}}
	s := newScheduler(t, p, 1)
	submit(t, s, want("1", 2, 9, of("b"), keepsWork), want("2", 2, 9, of("b"), keepsWork))
	require.Len(t, s.Cycle(noon).Starts, 2)
	hour := noon.Add(time.Hour)
	submit(t, s, want("x", 2, 1, class("high"), submitted(1)), want("y", 2, 2, class("high"), submitted(1)))
	plans := s.Cycle(hour).Plans
	require.Len(t, plans, 1)
	require.Equal(t, "x", plans[0].For)
	require.True(t, s.Requeue(plans[0].Victims[0].Job, hour.Add(time.Minute), time.Time{}))
	require.Equal(t, []string{"x"}, started(s.Cycle(hour.Add(time.Minute))))
}
