package simcluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/statefile/statefiletest"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/provisionertest"
	"github.com/forewarm/forewarm/provisioners/simcluster"
)

var start = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// testConfig is a cluster of three nodes of 4 GPUs and one of 8, which boot in about 20 s.
func testConfig() simcluster.Config {
	offer := simcluster.Offer{Type: "gpu-4", Model: "a100-80g", GPUs: 4, MemoryMiB: 81_920, Nodes: 3,
		Price: provisioners.Price(8 * money.USD), Boot: simcluster.Boot{P50: 20 * time.Second, P95: 25 * time.Second}}
	large := offer
	large.Type, large.GPUs, large.Nodes = "gpu-8", 8, 1
	return simcluster.Config{Seed: 7, Offers: []simcluster.Offer{offer, large}, SuspendTime: 30 * time.Second}
}

// lab is a cluster on a clock that the test owns.
type lab struct {
	*testing.T
	*simcluster.Cluster
	clock  *clock.Manual
	config simcluster.Config
	tokens int
}

func openLab(t *testing.T, c simcluster.Config) *lab {
	t.Helper()
	l := &lab{T: t, clock: clock.NewManual(start), config: c}
	l.reopen()
	return l
}

// reopen is a restart of the process.
func (l *lab) reopen() {
	l.Helper()
	var err error
	l.Cluster, err = simcluster.New(l.config, l.clock)
	require.NoError(l, err)
}

func (l *lab) submit(j simcluster.Job) string {
	l.Helper()
	j.Name = "job"
	if j.Length == 0 {
		j.Length = time.Hour
	}
	id, err := l.Submit(j)
	require.NoError(l, err)
	return id
}

func (l *lab) warm() provisioners.Instance {
	l.Helper()
	l.tokens++
	made, err := l.Create(l.Context(), fmt.Sprint("token-", l.tokens), provisioners.Spec{Type: "gpu-4", Owner: "dep",
		NodeID: fmt.Sprint("nod_", l.tokens)})
	require.NoError(l, err)
	return made
}

func (l *lab) observe(since provisioners.Mark) provisioners.Observation {
	l.Helper()
	seen, err := l.Observe(l.Context(), since)
	require.NoError(l, err)
	return seen
}

// work is one job as it is seen now, or was when it ended.
func (l *lab) work(since provisioners.Mark, id string) provisioners.Work {
	l.Helper()
	for _, w := range l.observe(since).Work {
		if w.ID == id {
			return w
		}
	}
	require.Fail(l, "no work "+id)
	return provisioners.Work{}
}

func (l *lab) node(name string) provisioners.ObservedNode {
	l.Helper()
	for _, n := range l.observe("").Nodes {
		if n.Name == name {
			return n
		}
	}
	require.Fail(l, "no node "+name)
	return provisioners.ObservedNode{}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	provisionertest.Run(t, provisionertest.Harness{New: newSubject})
}

// newSubject is a cluster whose nodes stay up: the suite does not keep them.
func newSubject(t *testing.T) provisionertest.Subject {
	c := testConfig()
	c.SuspendTime, c.StateFile = 0, filepath.Join(t.TempDir(), "cluster.json")
	l := openLab(t, c)
	return provisionertest.Subject{
		Provisioner: l.Cluster,
		Reopen: func(*testing.T) provisioners.Provisioner {
			l.reopen()
			return l.Cluster
		},
		Spec: provisioners.Spec{Type: "gpu-4"}, OtherSpec: provisioners.Spec{Type: "gpu-8"}, Machines: 3,
		Advance:    func(d time.Duration) { l.clock.Advance(d) },
		BootWithin: time.Minute, GoneWithin: time.Minute,
		Foreign: func() func() bool { // somebody else's work, which cooling must not touch
			id := l.submit(simcluster.Job{Type: "gpu-8", Length: 1000 * time.Hour})
			return func() bool { return l.work("", id).EndedAt.IsZero() }
		},
	}
}

func TestOffersSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	offers, err := openLab(t, testConfig()).Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 2)
	for _, o := range offers {
		require.True(t, o.Simulated)
		require.True(t, o.Observed)
		require.Equal(t, "sim-1", o.Region)
	}
}

func TestAColdNodeBootsForWork(t *testing.T) {
	t.Parallel()
	l := openLab(t, testConfig())
	mark := l.observe("").Mark
	id := l.submit(simcluster.Job{GPUs: 2})
	w := l.work(mark, id)
	require.Equal(t, provisioners.WaitBoot, w.Waiting)
	require.Equal(t, []provisioners.WorkNode{{Name: "gpu-4-1", GPUs: 2}}, w.Nodes)
	n := l.node("gpu-4-1")
	require.Equal(t, provisioners.NodePoweringUp, n.State)
	require.Equal(t, 2, n.GPUsTaken)
	l.clock.Advance(time.Minute)
	wait, started := l.work(mark, id).Wait()
	require.True(t, started)
	require.Greater(t, wait, 10*time.Second)
	require.Less(t, wait, 40*time.Second)
	require.Equal(t, provisioners.NodeTaken, l.node("gpu-4-1").State)
	l.clock.Advance(time.Hour)
	w = l.work(mark, id)
	require.Equal(t, time.Hour, w.EndedAt.Sub(w.StartedAt))
	l.clock.Advance(time.Minute)
	require.Equal(t, provisioners.NodeCold, l.node("gpu-4-1").State)
}

func TestAWarmNodeIsPreferredAndKept(t *testing.T) {
	t.Parallel()
	l := openLab(t, testConfig())
	l.submit(simcluster.Job{Length: time.Minute}) // on gpu-4-1
	made := l.warm()                              // gpu-4-2
	require.Equal(t, provisioners.Booting, made.Phase)
	for range 20 {
		require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
		l.clock.Advance(l.observe("").KeepWithin)
	}
	require.Equal(t, provisioners.NodeCold, l.node("gpu-4-1").State)
	require.Equal(t, provisioners.NodeIdle, l.node("gpu-4-2").State)
	require.Equal(t, made.ID, l.node("gpu-4-2").InstanceID)
	id := l.submit(simcluster.Job{})
	wait, started := l.work("", id).Wait()
	require.True(t, started)
	require.Zero(t, wait)
	require.Equal(t, "gpu-4-2", l.work("", id).Nodes[0].Name)
	require.NoError(t, l.Delete(t.Context(), made.ID))
	require.NoError(t, l.Cancel(id))
	l.clock.Advance(29 * time.Second)
	require.Equal(t, provisioners.NodeIdle, l.node("gpu-4-2").State)
	l.clock.Advance(time.Second)
	require.Equal(t, provisioners.NodeCold, l.node("gpu-4-2").State)
}

func TestKeepingEndsByItself(t *testing.T) {
	t.Parallel()
	l := openLab(t, testConfig())
	made, other := l.warm(), l.warm()
	require.NoError(t, l.Keep(t.Context(), []string{made.ID, made.ID}))
	l.clock.Advance(40 * time.Second) // both are up, and idle for less than 30 s
	require.NoError(t, l.Keep(t.Context(), []string{made.ID}))
	l.clock.Advance(25 * time.Second)
	got, err := l.Get(t.Context(), other.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.False(t, got.EndedAt.IsZero())
	err = l.Keep(t.Context(), []string{other.ID, made.ID, "none"})
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(err))
	require.ErrorContains(t, err, other.ID)
	require.ErrorContains(t, err, "none")
	l.clock.Advance(25 * time.Second)
	require.Equal(t, provisioners.NodeIdle, l.node("gpu-4-1").State, "the others were tried")
}

func TestAGangStartsAtOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	l := openLab(t, testConfig())
	one := l.submit(simcluster.Job{Length: 10 * time.Minute})
	gang := l.submit(simcluster.Job{Nodes: 3})
	late := l.submit(simcluster.Job{GPUs: 1})
	elsewhere := l.submit(simcluster.Job{Type: "gpu-8"})
	require.Equal(t, provisioners.WaitResources, l.work("", gang).Waiting)
	require.Empty(t, l.work("", gang).Nodes)
	require.Equal(t, provisioners.WaitPriority, l.work("", late).Waiting)
	require.Equal(t, provisioners.WaitBoot, l.work("", elsewhere).Waiting)
	l.clock.Advance(12 * time.Minute)
	w := l.work("", gang)
	require.Len(t, w.Nodes, 3)
	require.False(t, w.StartedAt.IsZero())
	require.True(t, w.StartedAt.After(l.work("", elsewhere).StartedAt))
	require.Error(t, l.Cancel(one), "it is over")
}

func TestWorkWithoutGPUsTakesANode(t *testing.T) {
	t.Parallel()
	l := openLab(t, testConfig())
	id := l.submit(simcluster.Job{CPUOnly: true})
	l.clock.Advance(time.Minute)
	require.Empty(t, l.observe("").Work)
	n := l.node("gpu-4-1")
	require.Equal(t, provisioners.NodeTaken, n.State)
	require.Zero(t, n.GPUsTaken)
	whole := l.submit(simcluster.Job{GPUs: 1, Exclusive: true})
	require.Equal(t, "gpu-4-2", l.work("", whole).Nodes[0].Name)
	beside := l.submit(simcluster.Job{GPUs: 1})
	require.Equal(t, "gpu-4-1", l.work("", beside).Nodes[0].Name)
	require.NoError(t, l.Cancel(id))
	require.Equal(t, provisioners.NodeTaken, l.node("gpu-4-1").State)
}

func TestMarks(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.StateFile = filepath.Join(t.TempDir(), "cluster.json")
	l := openLab(t, c)
	mark := l.observe("").Mark
	id := l.submit(simcluster.Job{Length: time.Minute})
	l.clock.Advance(time.Hour)
	require.Empty(t, l.observe("").Work)
	require.False(t, l.work(mark, id).EndedAt.IsZero())
	l.reopen()
	seen := l.observe(mark)
	require.True(t, seen.Complete)
	require.Len(t, seen.Work, 1)
	require.Empty(t, l.observe(seen.Mark).Work)
	for _, strange := range []provisioners.Mark{"x", mark + "0", "-1", "1" + mark, "\x00"} {
		_, err := l.Observe(t.Context(), strange)
		require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err), strange)
	}
	l.clock.Advance(9 * 24 * time.Hour)
	require.False(t, l.observe(mark).Complete, "what ended is forgotten")
	require.True(t, l.observe(seen.Mark).Complete, "nothing ended since")
}

// A cluster that keeps nothing on disk says that it does not know what was before.
func TestAClusterWithoutMemory(t *testing.T) {
	t.Parallel()
	l := openLab(t, testConfig())
	mark := l.observe("").Mark
	l.clock.Advance(time.Minute)
	l.reopen()
	require.False(t, l.observe(mark).Complete)
}

func TestRecurringWork(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Work = []simcluster.Work{
		{Job: simcluster.Job{Name: "nightly", Account: "vision", User: "ann", Namespace: "n", Queue: "q",
			Length: time.Hour}, Every: 24 * time.Hour, At: 9 * time.Hour},
		{Job: simcluster.Job{Name: "weekly", Length: time.Minute}, Every: 7 * 24 * time.Hour, At: 10 * time.Hour,
			Jitter: time.Hour},
	}
	l := openLab(t, c)
	mark := l.observe("").Mark
	l.clock.Advance(7 * 24 * time.Hour)
	jittered := map[string]time.Time{}
	nightly := 0
	for _, w := range l.observe(mark).Work {
		if w.Account != "vision" {
			jittered[w.ID] = w.SubmittedAt
			continue
		}
		nightly++
		require.Equal(t, []string{"ann", "n", "q", "gpu-4"}, []string{w.User, w.Namespace, w.Queue, w.Type})
		require.Equal(t, 4, w.GPUs)
		require.Equal(t, 9, w.SubmittedAt.Hour())
		require.Zero(t, w.SubmittedAt.Minute())
	}
	require.Equal(t, 7, nightly)
	require.Len(t, jittered, 1)
	for _, at := range jittered {
		require.Equal(t, time.Monday, at.Weekday())
		require.Equal(t, 10, at.Hour())
		require.NotZero(t, at.Nanosecond())
	}
}

func TestAnOverloadedClusterIsBounded(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Work = []simcluster.Work{{Job: simcluster.Job{Name: "flood", Length: 1000 * time.Hour}, Every: time.Second}}
	l := openLab(t, c)
	l.clock.Advance(time.Hour)
	require.Len(t, l.observe("").Work, 1000)
}

func TestATokenIsKnownForADay(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.StateFile = filepath.Join(t.TempDir(), "cluster.json")
	l := openLab(t, c)
	made := l.warm()
	require.NoError(t, l.Delete(t.Context(), made.ID))
	l.clock.Advance(24*time.Hour - time.Second)
	l.reopen()
	l.tokens = 0
	require.Equal(t, provisioners.Terminated, l.warm().Phase)
	_, err := l.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(err))
	l.clock.Advance(time.Second)
	l.tokens = 0
	require.Equal(t, provisioners.Booting, l.warm().Phase)
}

func TestAStateThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.StateFile = filepath.Join(t.TempDir(), "cluster.json")
	l := openLab(t, c)
	l.observe("")
	unblock := statefiletest.Block(t, c.StateFile)
	spec := provisioners.Spec{Type: "gpu-4", Owner: "dep", NodeID: "nod_1"}
	_, err := l.Create(t.Context(), "token", spec)
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err))
	unblock()
	made, err := l.Create(t.Context(), "token", spec)
	require.NoError(t, err)
	l.reopen()
	got, err := l.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, made, got)
}

func TestADamagedStateIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", `{"Version":9}`, `{"Version":1}`,
		`{"Version":1,"At":"2026-03-02T08:00:00Z","Nodes":[{}]}`,
		`{"Version":1,"At":"2026-03-02T08:00:00Z","Jobs":[null]}`,
		`{"Version":1,"At":"2026-03-02T08:00:00Z","Keepings":[{"ID":"x"}]}`} {
		c := testConfig()
		c.StateFile = filepath.Join(t.TempDir(), "cluster.json")
		require.NoError(t, os.WriteFile(c.StateFile, []byte(text), 0o600))
		_, err := simcluster.New(c, clock.NewManual(start))
		require.ErrorContains(t, err, "state file", text)
	}
}

// A configuration with fewer nodes ends what was on those that are gone.
func TestTheConfigurationMayChange(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.StateFile = filepath.Join(t.TempDir(), "cluster.json")
	l := openLab(t, c)
	mark := l.observe("").Mark
	stays, goes := l.submit(simcluster.Job{}), l.submit(simcluster.Job{})
	made := l.warm()
	l.config.Offers[0].Nodes = 1
	l.reopen()
	require.True(t, l.work(mark, stays).EndedAt.IsZero())
	require.False(t, l.work(mark, goes).EndedAt.IsZero())
	got, err := l.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	l.clock.Advance(time.Minute)
	require.False(t, l.work("", stays).StartedAt.IsZero())
}
