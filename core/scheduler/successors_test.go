package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/scheduler"
)

// Who is next are those whom cycles start as GPUs become free, in their order.
func TestSuccessors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		running, waiting []scheduler.Job
		ends             []string
		most             int
		want             []string
	}{
		"one after another": {running: []scheduler.Job{want("1", 4, 1)}, ends: []string{"1"}, most: 9,
			waiting: []scheduler.Job{want("a", 4, 1), want("b", 4, 1), want("c", 4, 1)}, want: []string{"a", "b", "c"}},
		"no more than asked for": {running: []scheduler.Job{want("1", 4, 1)}, ends: []string{"1"}, most: 2,
			waiting: []scheduler.Job{want("a", 4, 1), want("b", 4, 1), want("c", 4, 1)}, want: []string{"a", "b"}},
		"a higher class first": {running: []scheduler.Job{want("1", 4, 1)}, ends: []string{"1"}, most: 9,
			waiting: []scheduler.Job{want("a", 4, 1), want("b", 4, 1, class("high"))}, want: []string{"b", "a"}},
		"nobody where nothing ends": {running: []scheduler.Job{want("1", 4, 1)}, most: 9,
			waiting: []scheduler.Job{want("a", 4, 1)}},
		"nobody where what ends does not run": {running: []scheduler.Job{want("1", 4, 1)}, ends: []string{"2"}, most: 9,
			waiting: []scheduler.Job{want("a", 4, 1)}},
		"as much as becomes free": {running: []scheduler.Job{want("1", 2, 1), want("2", 2, 1)}, ends: []string{"1"}, most: 9,
			waiting: []scheduler.Job{want("a", 2, 1), want("b", 2, 1)}, want: []string{"a", "b"}},
		"nobody past who waits for all of it": {running: []scheduler.Job{want("1", 2, 1), want("2", 2, 9)},
			ends: []string{"1"}, most: 9, waiting: []scheduler.Job{want("a", 4, 1), want("b", 2, 10)}},
	} {
		s := newScheduler(t, scheduler.Policy{Classes: levels, Promises: 1}, 1)
		submit(t, s, tc.running...)
		require.Len(t, s.Cycle(noon).Starts, len(tc.running), name)
		submit(t, s, tc.waiting...)
		require.Empty(t, s.Cycle(noon.Add(time.Minute)).Starts, name)
		require.Equal(t, tc.want, scheduler.Successors(s, noon.Add(time.Minute), tc.ends, tc.most), name)
	}
}
