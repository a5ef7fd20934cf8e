package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/scheduler"
)

func leavingPolicy() scheduler.Policy {
	return scheduler.Policy{Classes: levels, Promises: 1, Preemption: scheduler.Preemption{Enabled: true,
		MinRuntime: 10 * time.Minute, Grace: 5 * time.Minute, Restart: time.Minute}}
}

func victims(p scheduler.Plan) []string {
	var ids []string
	for _, v := range p.Victims {
		ids = append(ids, v.Job)
	}
	return ids
}

// Who leaves when a job of a higher class wants the whole of the one node.
func TestWhoLeaves(t *testing.T) {
	t.Parallel()
	hour := noon.Add(time.Hour)
	for name, tc := range map[string]struct {
		running []scheduler.Job
		change  func(*scheduler.Policy)
		want    scheduler.Job
		now     time.Time
		leaves  []string
		awaits  []string
	}{
		"all that it needs": {running: []scheduler.Job{want("1", 2, 9, keepsWork), want("2", 2, 9, keepsWork)},
			want: want("x", 4, 1, class("high")), now: hour, leaves: []string{"1", "2"}},
		"not more than it needs": {running: []scheduler.Job{want("1", 2, 9, keepsWork), want("2", 2, 9, keepsWork)},
			want: want("x", 2, 1, class("high")), now: hour, leaves: []string{"1"}},
		"who loses less": {running: []scheduler.Job{want("1", 3, 9, keepsWork), want("2", 1, 9, keepsWork)},
			want: want("x", 1, 1, class("high")), now: hour, leaves: []string{"2"}},
		"nobody, if not all can": {running: []scheduler.Job{want("1", 2, 9, keepsWork), want("2", 2, 9)},
			want: want("x", 4, 1, class("high")), now: hour},
		"nobody of the same class": {running: []scheduler.Job{want("1", 4, 9, keepsWork)},
			want: want("x", 4, 1), now: noon.Add(time.Minute * 11)},
		"nobody who has only begun": {running: []scheduler.Job{want("1", 4, 9, keepsWork)},
			want: want("x", 4, 1, class("high")), now: noon.Add(10*time.Minute - 1)},
		"nobody who would lose all": {running: []scheduler.Job{want("1", 4, 9, losesWork)},
			want: want("x", 4, 1, class("high")), now: hour},
		"unless the policy says so": {running: []scheduler.Job{want("1", 4, 9, losesWork)},
			change: func(p *scheduler.Policy) { p.Preemption.LoseWork = true },
			want:   want("x", 4, 1, class("high")), now: hour, leaves: []string{"1"}},
		"nobody who has left three times": {running: []scheduler.Job{want("1", 4, 9, keepsWork,
			func(j *scheduler.Job) { j.Preemptions = 3 })}, want: want("x", 4, 1, class("high")), now: hour},
		"nobody who is about to end": {running: []scheduler.Job{want("1", 4, 9, keepsWork, predicted(1.05))},
			want: want("x", 4, 1, class("high")), now: hour, awaits: []string{"1"}},
		"who has outlived its prediction": {running: []scheduler.Job{want("1", 4, 9, keepsWork, predicted(0.9))},
			want: want("x", 4, 1, class("high")), now: hour, leaves: []string{"1"}},
		"who ran for long, for who did not": {running: []scheduler.Job{want("1", 4, 9, keepsWork)},
			want: want("x", 4, 1), now: noon.Add(3 * time.Hour), leaves: []string{"1"}},
	} {
		p := leavingPolicy()
		if tc.change != nil {
			tc.change(&p)
		}
		s := newScheduler(t, p, 1)
		submit(t, s, tc.running...)
		require.Len(t, s.Cycle(noon).Starts, len(tc.running), name)
		require.NoError(t, s.Submit(tc.want, tc.now))
		d := s.Cycle(tc.now)
		require.Empty(t, d.Starts, name)
		require.Equal(t, len(tc.leaves) > 0, len(d.Plans) == 1, name)
		if len(d.Plans) == 1 {
			require.ElementsMatch(t, tc.leaves, victims(d.Plans[0]), name)
			require.Equal(t, tc.now.Add(5*time.Minute), d.Plans[0].LeaveBy)
		}
		require.Equal(t, len(tc.awaits) > 0, len(d.Awaited) == 1, name)
		if len(d.Awaited) == 1 {
			require.Equal(t, tc.awaits, d.Awaited[0].Ends, name)
		}
	}
}

// What those who leave free belongs to the job for which they leave, however one after
// the other they do; and they come back and finish, without another plan.
func TestAPlanFromBeginningToEnd(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, leavingPolicy(), 1)
	submit(t, s, want("1", 2, 9, keepsWork), want("2", 2, 9, keepsWork))
	s.Cycle(noon)
	hour := noon.Add(time.Hour)
	submit(t, s, want("x", 4, 1, class("high"), submitted(1)))
	require.Len(t, s.Cycle(hour).Plans, 1)
	require.Empty(t, s.Cycle(hour).Plans, "once is enough")
	submit(t, s, want("thief", 1, 1, class("high"), submitted(1.01)))
	require.True(t, s.Requeue("1", hour.Add(time.Minute), time.Time{}))
	d := s.Cycle(hour.Add(time.Minute))
	require.Empty(t, d.Starts, "its GPUs are not free for others")
	require.Equal(t, scheduler.Preempting, d.Blocked[0].Blocker)
	require.True(t, s.Requeue("2", hour.Add(2*time.Minute), time.Time{}))
	require.Equal(t, []string{"x"}, started(s.Cycle(hour.Add(2*time.Minute))))
	for _, j := range s.Snapshot().Waiting {
		if j.ID == "1" {
			require.Equal(t, 1, j.Preemptions)
			require.Equal(t, 61*time.Minute, j.Attained)
		}
	}
	require.Empty(t, s.Cycle(hour.Add(20*time.Minute)).Plans, "nobody leaves for those who left")
	require.True(t, s.Finish("x", hour.Add(time.Hour)))
	require.ElementsMatch(t, []string{"1", "thief"}, started(s.Cycle(hour.Add(time.Hour)))[:2])
}

// Who was served because it had waited for too long leaves for a higher class, and for nobody of its own.
func TestOverdueLeavesForAHigherClass(t *testing.T) {
	t.Parallel()
	for id, leaves := range map[string]bool{"high": true, "": false} {
		s := newScheduler(t, leavingPolicy(), 1)
		submit(t, s, want("1", 4, 9, keepsWork, submitted(-49)))
		require.Len(t, s.Cycle(noon).Starts, 1)
		require.True(t, s.Snapshot().Running[0].Overdue)
		submit(t, s, want("x", 4, 1, class(id), submitted(-48.5)))
		require.Equal(t, leaves, len(s.Cycle(noon.Add(3*time.Hour)).Plans) == 1, id)
	}
}
