//go:build slurm

package slurm_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

// realElastic is the elastic cluster that scripts/with-slurm has started, for one test
// after the other: four nodes without power. Our own user is an ordinary one; plain jobs
// are those of another.
type realElastic struct {
	*slurm.Observed
	config slurm.Config
	dir    string
	faults string
	jobs   int
}

const (
	plainUser = "daemon"
)

func newElastic(t *testing.T, spoil ...func(*slurm.Config)) *realElastic {
	t.Helper()
	r := &realElastic{config: realConfig(t, "elastic"), dir: os.Getenv("FOREWARM_TEST_SLURM")}
	r.faults = r.config.CommandPrefix[1]
	r.config.Offers = []slurm.Offer{
		{Type: "four", Partition: "elastic", Gres: "gpu:a100", Model: "a100-80g", GPUs: 4, Constraint: "a100"},
		{Type: "other", Partition: "elastic", Gres: "gpu:a100", Model: "a100-80g", GPUs: 2, Constraint: "h100"},
	}
	for _, spoil := range spoil {
		spoil(&r.config)
	}
	r.open(t)
	r.coolAll(t)
	t.Cleanup(func() { r.coolAll(t) })
	return r
}

func (r *realElastic) open(t *testing.T) provisioners.Provisioner {
	t.Helper()
	var err error
	r.Observed, err = slurm.NewObserved(r.config, clock.System{})
	require.NoError(t, err)
	return r.Observed
}

// coolAll ends all jobs, repairs what is broken, and waits until every node is cold.
func (r *realElastic) coolAll(t *testing.T) {
	t.Helper()
	broken, err := filepath.Glob(filepath.Join(r.dir, "broken-*"))
	require.NoError(t, err)
	for _, file := range broken {
		require.NoError(t, os.Remove(file))
	}
	cancelPartitionJobs(t, "elastic")
	down := false
	waitUntil(t, patience, "nodes do not go cold", func() bool {
		cold := true
		for node := range strings.Lines(runAsRoot(t, "sinfo", "--noheader", "--Node", "--partition=elastic",
			"--Format=NodeList:10,StateComplete:80")) {
			name, state, _ := strings.Cut(strings.TrimSpace(node), " ")
			state = strings.TrimSpace(state)
			cold = cold && state == "idle+cloud+powered_down"
			if !down && !strings.Contains(state, "power") || strings.Contains(state, "down+cloud") {
				runAsRoot(t, "scontrol", "update", "NodeName="+name, "State=POWER_DOWN_FORCE")
			}
		}
		down = true
		return cold
	})
}

// submitPlain submits what a user would: a job that sleeps.
func (r *realElastic) submitPlain(t *testing.T, args ...string) string {
	t.Helper()
	r.jobs++
	line := append([]string{"runuser", "-u", plainUser, "--", "sbatch", "--parsable", "--chdir=/", "--output=/dev/null",
		"--partition=elastic"}, args...)
	return strings.TrimSpace(runAsRoot(t, append(line, "--wrap=sleep 600")...))
}

func (r *realElastic) observe(t *testing.T, since provisioners.Mark) provisioners.Observation {
	t.Helper()
	seen, err := r.Observe(t.Context(), since)
	require.NoError(t, err)
	require.True(t, seen.Complete)
	return seen
}

// warm takes a node into keeping and keeps it until it runs.
func (r *realElastic) warm(t *testing.T, token string) (provisioners.Instance, provisioners.ObservedNode) {
	t.Helper()
	made, err := r.Create(t.Context(), token, specOf("four"))
	require.NoError(t, err)
	r.keepUntil(t, patience, "the node does not come up", func() bool {
		made, err = r.Get(t.Context(), made.ID)
		require.NoError(t, err)
		return made.Phase == provisioners.Running
	}, made.ID)
	return made, r.nodeOf(t, made.ID)
}

func (r *realElastic) nodeOf(t *testing.T, id string) provisioners.ObservedNode {
	t.Helper()
	nodes := r.observe(t, "").Nodes
	i := slices.IndexFunc(nodes, func(n provisioners.ObservedNode) bool { return n.InstanceID == id })
	require.GreaterOrEqual(t, i, 0, "no node is kept by %s: %+v", id, nodes)
	return nodes[i]
}

// requireIdle requires that the node was not suspended. A heartbeat that begins during the
// very look is taken for work of others.
func (r *realElastic) requireIdle(t *testing.T, id string) {
	t.Helper()
	waitUntil(t, patience, "the node is not idle", func() bool {
		state := r.nodeOf(t, id).State
		require.Contains(t, []provisioners.NodeState{provisioners.NodeIdle, provisioners.NodeTaken}, state)
		return state == provisioners.NodeIdle
	})
}

// keepUntil keeps the instances as the control plane would, until the condition holds.
func (r *realElastic) keepUntil(t *testing.T, limit time.Duration, what string, done func() bool, ids ...string) {
	t.Helper()
	waitUntil(t, limit, what, func() bool {
		if err := r.Keep(t.Context(), ids); err != nil {
			require.NoError(t, err, runAsRoot(t, "squeue", "--states=all", "--partition=elastic", "--sort=i",
				"--format=%i %j %T %r %S %e %N")+runAsRoot(t, "sinfo", "--Node", "--partition=elastic", "--long"))
		}
		return done()
	})
}

func (r *realElastic) keepFor(t *testing.T, d time.Duration, ids ...string) {
	t.Helper()
	end := time.Now().Add(d)
	r.keepUntil(t, d+patience, "", func() bool { return time.Now().After(end) }, ids...)
}

// started waits until the job has started, and returns what was seen of it.
func (r *realElastic) started(t *testing.T, job string, keep ...string) provisioners.Work {
	t.Helper()
	var w provisioners.Work
	r.keepUntil(t, patience, "job "+job+" does not start", func() bool {
		work := r.observe(t, "").Work
		i := slices.IndexFunc(work, func(w provisioners.Work) bool { return strings.HasPrefix(w.ID, job+"@") })
		if i >= 0 {
			w = work[i]
		}
		return !w.StartedAt.IsZero()
	}, keep...)
	return w
}

func waitOf(t *testing.T, w provisioners.Work) time.Duration {
	t.Helper()
	wait, started := w.Wait()
	require.True(t, started)
	t.Logf("job %s waited %v on %v", w.ID, wait, w.Nodes)
	return wait
}

// heartbeats counts what our user's jobs were, by the log of the controller.
func (r *realElastic) heartbeats(t *testing.T) int {
	t.Helper()
	means, err := r.Means(t.Context())
	require.NoError(t, err)
	return means.Submitted
}
