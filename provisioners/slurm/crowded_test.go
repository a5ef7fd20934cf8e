package slurm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

// However many jobs wait, all is seen, and keeping does not even look at them.
func TestALongQueue(t *testing.T) {
	t.Parallel()
	const crowd = 20_000
	l := newElasticLab(t, 2, func(w *world) { w.Elastic.Crowd = crowd })
	made := l.warm(t, "token-1")
	seen, err := l.Observe(t.Context(), "")
	require.NoError(t, err)
	require.True(t, seen.Complete, seen.Gap)
	require.Len(t, seen.Work, crowd)
	before := l.called(t, "squeue --all")
	require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
	require.Equal(t, before, l.called(t, "squeue --all"))
}

// What a user writes where others read it forges no row, and shifts none.
func TestForgedRows(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 2, func(w *world) { w.Elastic.Accounts = true }, func(c *slurm.Config) { c.Accounting = true })
	before, err := l.Observe(t.Context(), "")
	require.NoError(t, err)
	forged := strings.Join([]string{"\n9999", "9999", "RUNNING", "None", "ada", "vision", "gpu", "1772442000",
		"1772442000", "1772442000", "N/A", "n1", "1", "1", "cpu=1,gres/gpu=4", "N/A", "N/A", "N/A", "OK", "1", ""}, "\x1f")
	l.mustUpdate(t, func(w *world) {
		for _, text := range []string{forged, "a\nb", "\x1f\x1f"} {
			w.submitJob(fakeJob{User: "eve", Name: text, Comment: text, Partition: "gpu", Gres: "gpu:a100", GPUs: 1,
				elasticJob: elasticJob{Account: text, CPUs: 1, Count: 1, Begin: w.Now}})
		}
	})
	l.submit(t, provisionertest.PlainWork{GPUs: 4, Nodes: 1})
	seen, err := l.Observe(t.Context(), before.Mark)
	require.NoError(t, err)
	require.True(t, seen.Complete, seen.Gap)
	require.Len(t, seen.Work, 4)
	for _, w := range seen.Work {
		require.NotContains(t, w.ID, "9999")
	}
	require.Equal(t, "vision", seen.Work[3].Account)

	l.mustUpdate(t, func(w *world) {
		for _, j := range w.Jobs {
			j.endAt("COMPLETED", w.Now)
		}
	})
	l.advanceClock(t, fakeMinJobAge+time.Minute)
	seen, err = l.Observe(t.Context(), seen.Mark)
	require.NoError(t, err)
	require.True(t, seen.Complete, seen.Gap)
	require.Len(t, seen.Work, 4, "accounting has the same")
	l.mustUpdate(t, func(w *world) {
		for _, call := range w.Calls {
			if strings.Contains(call, "--all ") || strings.Contains(call, "--allusers") {
				require.NotContains(t, call, ",Name:")
				require.NotContains(t, call, "JobName")
				require.NotContains(t, call, "Comment")
			}
		}
	})
}

// An outage of hours is caught up with in portions of an hour and of so many jobs, none
// of which is lost or told twice, and only the last one is complete. Heartbeats of ours
// that accounting knows are no work.
func TestCatchingUp(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 1, func(w *world) { w.Elastic.Accounts = true }, func(c *slurm.Config) { c.Accounting = true })
	seen, err := l.Observe(t.Context(), "")
	require.NoError(t, err)
	const outage, crowd = 5 * time.Hour, 1200
	l.mustUpdate(t, func(w *world) {
		past := func(id int, user, name string, gpus int, ended time.Time) {
			w.Elastic.Past = append(w.Elastic.Past, &fakeJob{ID: id, User: user, Name: name, Partition: "gpu",
				Gres: "gpu:a100", GPUs: gpus, Node: "n0", Submitted: ended.Add(-90 * time.Second),
				Started: ended.Add(-time.Minute), Ended: ended, State: "COMPLETED", elasticJob: elasticJob{Count: 1, CPUs: 1}})
		}
		for i := range 10 {
			past(2000+i, "ada", "train", 1, w.Now.Add(time.Duration(i+1)*outage/11))
		}
		for i := range crowd { // as when a whole array is cancelled
			past(3000+i, "bob", "sweep", 1, w.Now.Add(2*time.Hour+time.Minute))
		}
		past(5000, "ada", "forewarm-0123456789abcdef-h", 4, w.Now.Add(40*time.Minute))
	})
	l.advanceClock(t, outage)
	times := map[string]int{}
	calls := 0
	for !seen.Complete || calls == 0 {
		calls++
		require.Less(t, calls, 20, "it does not get on: %s", seen.Gap)
		if calls == 3 {
			l.armFault(t, "sacct down")()
		}
		next, err := l.Observe(t.Context(), seen.Mark)
		require.NoError(t, err)
		require.LessOrEqual(t, len(next.Work), 500)
		require.Len(t, next.Nodes, 1, "the present is told with each portion")
		require.Equal(t, next.Complete, next.Gap == "")
		require.Equal(t, !next.Complete && next.Mark != seen.Mark, next.More)
		for _, w := range next.Work {
			times[w.ID]++
		}
		seen = next
	}
	require.Greater(t, calls, 5)
	require.Len(t, times, 10+crowd+1, "the job of ada's that is called like ours is work")
	for id, count := range times {
		require.Equal(t, 1, count, id)
	}
}

// The jobs of our own user are told from ours by their names, in accounting, too.
func TestOwnHistory(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 1, func(w *world) { w.Elastic.Accounts = true }, func(c *slurm.Config) { c.Accounting = true })
	made := l.warm(t, "token-1")
	before, err := l.Observe(t.Context(), "")
	require.NoError(t, err)
	l.mustUpdate(t, func(w *world) {
		for i, name := range []string{"forewarm-0123456789abcdef-h", "train"} {
			w.Elastic.Past = append(w.Elastic.Past, &fakeJob{ID: 50 + i, User: "me", Name: name, Partition: "gpu", GPUs: 4,
				Gres: "gpu:a100", Node: "n0", Submitted: w.Now, Started: w.Now, Ended: w.Now.Add(time.Minute),
				State:      "COMPLETED",
				elasticJob: elasticJob{Count: 1, CPUs: 8}})
		}
	})
	for range 10 {
		require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
		l.advanceClock(t, 40*time.Second)
	}
	seen, err := l.Observe(t.Context(), before.Mark)
	require.NoError(t, err)
	require.True(t, seen.Complete, seen.Gap)
	require.Len(t, seen.Work, 1)
	require.Contains(t, seen.Work[0].ID, "51@")
}

// A node that was taken out of slurm.conf is nobody's reason not to keep the others.
func TestRemovedNode(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 2, nil)
	gone, stays := l.warm(t, "token-1"), l.warm(t, "token-2")
	l.mustUpdate(t, func(w *world) { w.Nodes = w.Nodes[1:] })
	err := l.Keep(t.Context(), []string{gone.ID, stays.ID})
	if err != nil {
		require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(err))
		require.NotContains(t, err.Error(), stays.ID)
	}
	l.advanceClock(t, 2*time.Minute)
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(l.Keep(t.Context(), []string{gone.ID, stays.ID})))
	got, err := l.Observed.Get(t.Context(), gone.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	got, err = l.Observed.Get(t.Context(), stays.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
}

// Slurm's times are by its controller's clock, and so is all that is counted with them.
func TestAnotherClock(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			t.Parallel()
			theirs := start.Add(skew)
			l := newElasticLab(t, 1, func(w *world) {
				w.Now, w.Elastic.Until = theirs, theirs
				w.Nodes[0].Power = fakePower{State: "up", Busy: theirs}
			})
			seen, err := l.Observe(t.Context(), "")
			require.NoError(t, err)
			require.WithinDuration(t, theirs, seen.At, time.Second)
			made := l.create(t, "token-1")
			require.Equal(t, 1, l.called(t, "--begin=now+100")+l.called(t, "--begin=now+99"),
				"a third of SuspendTime from now")
			for range 20 {
				l.clock.Advance(30 * time.Second)
				l.mustUpdate(t, func(w *world) { w.Now = w.Now.Add(30 * time.Second) })
				require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
			}
			got, err := l.Observed.Get(t.Context(), made.ID)
			require.NoError(t, err)
			require.Equal(t, provisioners.Running, got.Phase)
			require.LessOrEqual(t, l.beats(t), 8, "heartbeats follow each other too fast")
		})
	}
}

// Between the moment in which Slurm gives work to a cold node and the one in which its
// power saving wakes up, the node is still without power. It boots for that work: no
// heartbeat of ours is to start beside it.
func TestAColdNodeThatWasGivenWork(t *testing.T) {
	t.Parallel()
	l := newElasticLab(t, 2, nil)
	l.submit(t, provisionertest.PlainWork{GPUs: 1, Nodes: 1})
	given := l.resumed(t)
	require.Len(t, given, 1)
	l.mustUpdate(t, func(w *world) { w.node(given[0]).Power.State = "cold" })

	made := l.create(t, "token-1")
	seen, err := l.Observe(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, seen.Nodes, 2)
	for _, n := range seen.Nodes {
		require.Equal(t, provisioners.NodePoweringUp, n.State)
		require.Equal(t, n.Name != given[0], n.InstanceID == made.ID)
	}
	_, err = l.Observed.Create(t.Context(), "token-2", specNamed("a100-4"))
	require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(err))
	require.Zero(t, l.called(t, "--nodelist="+given[0]))
}
