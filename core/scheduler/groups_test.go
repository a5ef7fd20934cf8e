package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/scheduler"
)

func inGroup(name string, most int) func(*scheduler.Job) {
	return func(j *scheduler.Job) { j.Group = scheduler.Group{Name: name, Most: most} }
}

// Of a group only so many hold GPUs at once, whatever is free, and what waits behind it does not wait for it.
func TestAGroupIsBounded(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Default(), 4)
	for i := range 6 {
		submit(t, s, want(fmt.Sprint("g", i), 1, 1, submitted(-1), inGroup("g", 2)))
	}
	submit(t, s, want("other", 1, 1))
	may, mayNot := s.Within(s.Order(noon))
	require.Equal(t, []string{"g0", "g1", "other"}, may)
	require.Equal(t, []string{"g2", "g3", "g4", "g5"}, mayNot)
	d := s.Cycle(noon)
	require.Equal(t, []string{"g0", "g1", "other"}, started(d))
	require.Equal(t, scheduler.GroupLimit, d.Blocked[0].Blocker)
	require.Equal(t, "g2", d.Blocked[0].Job)
	require.Empty(t, d.Promised, "nobody holds GPUs back for what its own group keeps from starting")
	may, mayNot = s.Within(s.Order(noon))
	require.Empty(t, may)
	require.Len(t, mayNot, 4)

	anew, err := scheduler.Restore(scheduler.Default(), s.Snapshot())
	require.NoError(t, err)
	require.Empty(t, anew.Cycle(noon).Starts, "what runs is counted after a restart, too")
	require.True(t, anew.Finish("g0", noon))
	require.Equal(t, []string{"g2"}, started(anew.Cycle(noon)))
}

// A promise has its place within the bound.
func TestAPromiseCountsInItsGroup(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, scheduler.Policy{Order: scheduler.Arrival, Promises: 2}, 1)
	submit(t, s, want("full", 4, 1))
	require.Len(t, s.Cycle(noon).Starts, 1)
	submit(t, s, want("g0", 4, 9, submitted(-2), inGroup("g", 1)), want("g1", 1, 0.1, submitted(-1), inGroup("g", 1)))
	d := s.Cycle(noon)
	require.Len(t, d.Promised, 1)
	require.Equal(t, "g0", d.Promised[0].ID)
	require.Empty(t, d.Starts)
	require.True(t, s.Finish("full", noon))
	require.Equal(t, []string{"g0"}, started(s.Cycle(noon)))
}
