package provisionertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
)

// ObserverHarness makes subjects that are observers.
type ObserverHarness struct {
	// New makes a cluster of at least two nodes, all cold or yet to come, and an observer of
	// it, which no other test uses. Its cluster suspends nodes that are idle.
	New func(t *testing.T) ObserverSubject
}

// ObserverSubject is one observer under test. Its Provisioner, and what Reopen makes, is
// a provisioners.Observer.
type ObserverSubject struct {
	Subject
	// SuspendWithin bounds the time until a node that has been idle for long enough is
	// cold.
	SuspendWithin time.Duration
	// Submit gives the cluster plain work of one of its users, and returns its handle.
	Submit func(PlainWork) string
	// Finish ends the work; Runs reports whether it runs, and has never been disturbed.
	Finish func(handle string)
	Runs   func(handle string) bool
	// Forget makes the cluster forget all work that has ended.
	Forget func()
	// The hooks below inject one fault; nil where the cluster cannot be made to fail.
	TruncateQueue func()            // some row of the next list of everybody's work is missing
	BreakBoot     func()            // no node comes up from now on; those that boot fail within BootWithin
	Beats         func() (jobs int) // how much work of our own the cluster has been given so far
	// MostBeats is how much of that one kept node may cause in an hour of idleness.
	MostBeats int
	// NodesCome says that the cluster has no cold nodes: its autoscaler makes nodes, as many
	// as Machines, which have no name before they are there.
	NodesCome bool
	// GangParts says that the part of a gang that is on one node is work of its own.
	GangParts bool
}

// PlainWork is what a user of the cluster submits, who knows nothing of us.
type PlainWork struct {
	GPUs  int // of each node; 0: work that uses none
	Nodes int
	Whole bool // wants its nodes for itself
}

// RunObserver runs the suite of observers. An adapter runs Run as well.
func RunObserver(t *testing.T, harness ObserverHarness) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, ObserverSubject)
	}{
		{"a cold cluster is seen", coldClusterIsSeen},
		{"a kept node is seen, and stays", keptNodeStays},
		{"keeping is bounded", keepingIsBounded},
		{"a node that nobody keeps goes cold", unkeptNodeGoesCold},
		{"a node that is up is taken first", idleNodeIsTakenFirst},
		{"a node is in keeping once", nodeIsKeptOnce},
		{"keep names what is gone", keepNamesWhatIsGone},
		{"keep goes on after a restart", keepGoesOnAfterRestart},
		{"plain work starts on the kept node", plainWorkStartsWarm},
		{"cooling leaves work alone", coolingLeavesWorkAlone},
		{"a long stay is no danger to the keeping", keepingSurvivesWork},
		{"work of every user is seen", coldWorkIsSeen},
		{"work joins a boot", workJoinsBoot},
		{"work of several nodes", gangIsSeen},
		{"work without GPUs", cpuWorkIsSeen},
		{"work that takes the node whole", wholeNodeWork},
		{"waiting work says why", waitingWorkSaysWhy},
		{"short work is not missed", shortWorkIsNotMissed},
		{"what was forgotten is not complete", forgottenIsIncomplete},
		{"a mark outlives its process", markOutlivesProcess},
		{"a strange mark", strangeMark},
		{"a cut queue says so", cutQueueSaysSo},
		{"a boot that fails", bootThatFails},
		{"too many looks", tooManyLooks},
		{"an ended context looks at nothing", endedContextLooksAtNothing},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, harness.New(t))
		})
	}
	t.Run("random histories of work", func(t *testing.T) {
		t.Parallel()
		testWorkHistories(t, harness)
	})
}

func (s ObserverSubject) observer() provisioners.Observer {
	return s.Provisioner.(provisioners.Observer)
}

func (s ObserverSubject) observe(t *testing.T, since provisioners.Mark) provisioners.Observation {
	t.Helper()
	seen, err := s.observer().Observe(t.Context(), since)
	require.NoError(t, err)
	require.True(t, seen.Complete, seen.Gap)
	require.False(t, seen.At.IsZero())
	require.NotEmpty(t, seen.Mark)
	requireSane(t, seen)
	return seen
}

// requireSane checks what is true of every observation.
func requireSane(t *testing.T, seen provisioners.Observation) {
	t.Helper()
	for i, n := range seen.Nodes {
		require.True(t, i == 0 || seen.Nodes[i-1].Name < n.Name, "nodes are not in order")
		require.NotEmpty(t, n.Types)
		require.LessOrEqual(t, n.GPUsTaken, n.GPUs)
		if n.State == provisioners.NodeIdle || n.State == provisioners.NodeCold {
			require.Zero(t, n.GPUsTaken, "node %s is %s", n.Name, n.State)
			require.Zero(t, n.CPUsTaken, "node %s is %s", n.Name, n.State)
		}
	}
	for i, w := range seen.Work {
		require.True(t, i == 0 || seen.Work[i-1].ID < w.ID, "work is not in order, or twice")
		require.Positive(t, w.GPUs)
		require.False(t, w.SubmittedAt.IsZero())
		require.Equal(t, w.StartedAt.IsZero() && w.EndedAt.IsZero(), w.Waiting != "", "work %+v", w)
		wait, started := w.Wait()
		require.Equal(t, !w.StartedAt.IsZero(), started)
		require.GreaterOrEqual(t, wait, time.Duration(0))
		total := 0
		for _, n := range w.Nodes {
			total += n.GPUs
		}
		require.True(t, len(w.Nodes) == 0 || total == w.GPUs, "its nodes have %d of %d GPUs", total, w.GPUs)
	}
}

// nodeOf is the node that the instance keeps.
func nodeOf(t *testing.T, seen provisioners.Observation, id string) provisioners.ObservedNode {
	t.Helper()
	for _, n := range seen.Nodes {
		if n.InstanceID == id {
			return n
		}
	}
	require.FailNow(t, "no node is kept by "+id)
	return provisioners.ObservedNode{}
}

func (s ObserverSubject) offered(t *testing.T) provisioners.Offer {
	t.Helper()
	offers, err := s.Offers(t.Context())
	require.NoError(t, err)
	for _, o := range offers {
		if o.Type == s.Spec.Type {
			return o
		}
	}
	require.FailNow(t, "the spec's type is not offered")
	return provisioners.Offer{}
}

// keepFor calls Keep as often as it must be called, for the time.
func (s ObserverSubject) keepFor(t *testing.T, d time.Duration, ids ...string) {
	t.Helper()
	pace := s.observe(t, "").KeepWithin
	for d > 0 {
		require.NoError(t, s.observer().Keep(t.Context(), ids))
		step := d
		if pace > 0 {
			step = min(d, pace)
		}
		s.Advance(step)
		d -= step
	}
}

// warm creates an instance and keeps it until it runs.
func (s ObserverSubject) warm(t *testing.T) provisioners.Instance {
	t.Helper()
	return s.awaitRunning(t, s.createInstance(t).ID)
}

// work is the only work that is seen.
func onlyWork(t *testing.T, seen provisioners.Observation) provisioners.Work {
	t.Helper()
	require.Len(t, seen.Work, 1)
	return seen.Work[0]
}

// awaitStart lets time pass until the only work has started.
func (s ObserverSubject) awaitStart(t *testing.T) provisioners.Work {
	t.Helper()
	for range steps + 1 {
		if w := onlyWork(t, s.observe(t, "")); !w.StartedAt.IsZero() {
			return w
		}
		s.Advance((s.BootWithin + s.SuspendWithin) / steps)
	}
	require.FailNow(t, "the work did not start")
	return provisioners.Work{}
}
