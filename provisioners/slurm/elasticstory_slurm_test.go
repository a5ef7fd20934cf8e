//go:build slurm

package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

// The whole story: a cold node is warmed and kept for several times SuspendTime, a plain
// job starts on it at once, and when nobody keeps it any more Slurm suspends it.
func TestElasticNodeIsKeptWarm(t *testing.T) {
	r := newElastic(t)
	cold := r.observe(t, "")
	require.Len(t, cold.Nodes, 4)
	for _, n := range cold.Nodes {
		require.Equal(t, provisioners.NodeCold, n.State)
		require.Equal(t, []string{"four"}, n.Types)
		require.Equal(t, 4, n.GPUs)
	}
	made, node := r.warm(t, "token-1")
	before := r.heartbeats(t)
	r.keepFor(t, 54*time.Second, made.ID) // three times SuspendTime
	r.requireIdle(t, made.ID)
	require.LessOrEqual(t, r.heartbeats(t)-before, 11, "heartbeats follow each other too fast")
	mark := r.observe(t, "").Mark

	boots := r.boots(t)
	job := r.submitPlain(t, "--gres=gpu:4")
	w := r.started(t, job, made.ID)
	waitOf(t, w)
	require.Equal(t, boots, r.boots(t), "it was not warm")
	require.Equal(t, []provisioners.WorkNode{{Name: node.Name, GPUs: 4}}, w.Nodes)
	require.Equal(t, plainUser, w.User)
	require.Equal(t, "four", w.Type)
	require.Equal(t, "elastic", w.Queue)
	require.Len(t, r.observe(t, mark).Work, 1, "our own work was seen")
	taken := r.nodeOf(t, made.ID)
	require.Equal(t, provisioners.NodeTaken, taken.State)
	require.Equal(t, 4, taken.GPUsTaken)
	sent := r.heartbeats(t)
	r.keepFor(t, 20*time.Second, made.ID)
	require.Equal(t, sent, r.heartbeats(t), "a node with work needs no heartbeat")
	runAsRoot(t, "scancel", job)
	r.keepFor(t, 30*time.Second, made.ID)
	r.requireIdle(t, made.ID)

	r.open(t) // and now nobody keeps it any more, as after the death of the control plane
	waitUntil(t, patience, "a node that nobody keeps stays up", func() bool {
		nodes := r.observe(t, "").Nodes
		return !slices.ContainsFunc(nodes, func(n provisioners.ObservedNode) bool { return n.State != provisioners.NodeCold })
	})
	got, err := r.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.Empty(t, strings.TrimSpace(runAsRoot(t, "squeue", "--noheader", "--partition=elastic", "--states=PENDING")))
}

// Cooling is passive: work goes on, and what is idle stays up until Slurm suspends it, so
// that the next to warm it finds it warm.
func TestElasticCooling(t *testing.T) {
	r := newElastic(t)
	made, node := r.warm(t, "token-1")
	job := r.submitPlain(t, "--gres=gpu:1")
	r.started(t, job, made.ID)
	require.NoError(t, r.Delete(t.Context(), made.ID))
	got, err := r.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, got.Phase)
	require.Contains(t, runAsRoot(t, "squeue", "--noheader", "--jobs="+job, "--format=%T"), "RUNNING")
	late, err := r.Create(t.Context(), "token-1", specOf("four"))
	require.NoError(t, err)
	require.Equal(t, provisioners.Terminated, late.Phase, "a late duplicate warmed a node")
	runAsRoot(t, "scancel", job)
	waitUntil(t, patience, "the job does not end", func() bool {
		nodes := r.observe(t, "").Nodes
		return slices.ContainsFunc(nodes, func(n provisioners.ObservedNode) bool { return n.State == provisioners.NodeIdle })
	})
	again, err := r.Create(t.Context(), "token-2", specOf("four"))
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, again.Phase)
	require.Equal(t, node.Name, r.nodeOf(t, again.ID).Name)
}

// What else comes to a warm node: a job within a heartbeat's second that wants all of it,
// work that uses no GPU, one that needs a second node, and one during the boot.
func TestElasticOddWork(t *testing.T) {
	r := newElastic(t)
	before := r.boots(t)
	made, err := r.Create(t.Context(), "token-1", specOf("four"))
	require.NoError(t, err)
	node := r.nodeOf(t, made.ID)
	// Until it boots, a node that was given away counts as any cold one.
	waitUntil(t, patience, "no boot", func() bool {
		return r.boots(t) > before && r.nodeOf(t, made.ID).State == provisioners.NodePoweringUp
	})
	joined := r.started(t, r.submitPlain(t, "--gres=gpu:4"), made.ID)
	waitOf(t, joined)
	require.Equal(t, node.Name, joined.Nodes[0].Name, "it did not join the boot")
	job, _, _ := strings.Cut(joined.ID, "@")
	runAsRoot(t, "scancel", job)
	r.keepUntil(t, patience, "no heartbeat", func() bool {
		return strings.TrimSpace(runAsRoot(t, "squeue", "--noheader", "--user=nobody",
			"--states=RUNNING,COMPLETING,COMPLETED", "--nodelist="+node.Name, "--format=%i")) != "" &&
			r.nodeOf(t, made.ID).State == provisioners.NodeIdle
	}, made.ID)
	before = r.boots(t)
	whole := r.started(t, r.submitPlain(t, "--exclusive"), made.ID)
	waitOf(t, whole)
	require.Equal(t, before, r.boots(t))
	require.Equal(t, []provisioners.WorkNode{{Name: node.Name, GPUs: 4}}, whole.Nodes, "an exclusive job has all GPUs")
	job, _, _ = strings.Cut(whole.ID, "@")
	runAsRoot(t, "scancel", job)

	cpu := r.submitPlain(t, "--nodelist="+node.Name)
	r.keepUntil(t, patience, "CPU work is not seen", func() bool {
		n := r.nodeOf(t, made.ID)
		return n.State == provisioners.NodeTaken && n.CPUsTaken == 1 && n.GPUsTaken == 0
	}, made.ID)
	require.Empty(t, r.observe(t, "").Work)
	runAsRoot(t, "scancel", cpu)

	gang := r.started(t, r.submitPlain(t, "--nodes=2", "--gpus-per-node=4"), made.ID)
	require.Len(t, gang.Nodes, 2)
	require.Equal(t, 8, gang.GPUs)
	waitOf(t, gang)
	require.Greater(t, r.boots(t), before, "one of its nodes was cold")
}

// Arrays, heterogeneous jobs and requeues are each their own work.
func TestElasticIdentities(t *testing.T) {
	r := newElastic(t)
	made, _ := r.warm(t, "token-1")
	before := r.observe(t, "")
	array := r.submitPlain(t, "--array=1-3%2", "--gres=gpu:1")
	het := r.submitPlain(t, "--gres=gpu:1", ":", "--partition=elastic", "--gres=gpu:a100:1")
	job := r.submitPlain(t, "--gpus=1", "--requeue")
	prefixes := func() []string {
		var found []string
		for _, w := range r.observe(t, before.Mark).Work {
			id, _, _ := strings.Cut(w.ID, "@")
			found = append(found, fmt.Sprint(id, ":", w.GPUs))
		}
		slices.Sort(found)
		return found
	}
	number := func(base string, plus int) string {
		var n int
		_, err := fmt.Sscan(base, &n)
		require.NoError(t, err)
		return fmt.Sprint(n + plus)
	}
	others := []string{het + ":1", number(het, 1) + ":1", job + ":1"}
	apart := slices.Sorted(slices.Values(append([]string{array + "_1:1", array + "_2:1", array + "_3:1"}, others...)))
	whole := slices.Sorted(slices.Values(append([]string{array + "_*:1"}, others...)))
	sawWhole := false // Slurm tells tasks apart when it places them, which may be before the first look
	r.keepUntil(t, patience, "work is missing", func() bool {
		found := prefixes()
		sawWhole = sawWhole || slices.Equal(whole, found)
		return slices.Equal(apart, found)
	}, made.ID)
	t.Log("the array was seen as one before it was placed:", sawWhole)
	first := r.started(t, job, made.ID)
	runAsRoot(t, "scontrol", "requeue", job)
	r.keepUntil(t, patience, "the requeued job is not new work", func() bool {
		return slices.ContainsFunc(r.observe(t, "").Work, func(w provisioners.Work) bool {
			return strings.HasPrefix(w.ID, job+"@") && w.ID != first.ID && w.Waiting != ""
		})
	}, made.ID)
	limited := slices.IndexFunc(r.observe(t, "").Work, func(w provisioners.Work) bool {
		return strings.HasPrefix(w.ID, array+"_3@")
	})
	require.Equal(t, provisioners.WaitLimits, r.observe(t, "").Work[limited].Waiting)
}

// A boot that fails leaves the node down: the instance ends, the next one finds another
// node, and the line that is told to the administrator works.
func TestElasticBootFails(t *testing.T) {
	r := newElastic(t)
	for _, node := range []string{"e1", "e2", "e3", "e4"} {
		require.NoError(t, os.WriteFile(filepath.Join(r.dir, "broken-"+node), nil, 0o600))
	}
	made, err := r.Create(t.Context(), "token-1", specOf("four"))
	require.NoError(t, err)
	node := r.nodeOf(t, made.ID).Name
	waitUntil(t, patience, "the failed boot is not seen", func() bool {
		got, err := r.Get(t.Context(), made.ID)
		require.NoError(t, err)
		return got.Phase == provisioners.Terminated
	})
	nodes := r.observe(t, "").Nodes
	down := nodes[slices.IndexFunc(nodes, func(n provisioners.ObservedNode) bool { return n.Name == node })]
	t.Log(down)
	require.Equal(t, provisioners.NodeUnavailable, down.State)
	require.Empty(t, down.InstanceID)
	_, line, found := strings.Cut(down.Message, "an administrator brings it back with: ")
	require.True(t, found, down.Message)
	require.NoError(t, os.Remove(filepath.Join(r.dir, "broken-"+node)))
	runAsRoot(t, "sh", "-c", line)
	waitUntil(t, patience, "the line did not bring it back", func() bool {
		nodes := r.observe(t, "").Nodes
		return slices.ContainsFunc(nodes, func(n provisioners.ObservedNode) bool {
			return n.Name == node && n.State == provisioners.NodeCold
		})
	})
	job := r.submitPlain(t, "--gres=gpu:4", "--nodelist="+node)
	r.started(t, job)
}

// An administrator's POWER_UP is used where it is accepted, once for a boot.
func TestElasticAdministrator(t *testing.T) {
	r := newElastic(t, func(c *slurm.Config) { c.CommandPrefix = c.CommandPrefix[:2] })
	resumed := func() int {
		text, err := os.ReadFile(filepath.Join(r.dir, "resumed"))
		require.True(t, err == nil || os.IsNotExist(err), "%v", err)
		return strings.Count(string(text), "\n")
	}
	before := resumed()
	made, err := r.Create(t.Context(), "token-1", specOf("four"))
	require.NoError(t, err)
	waitUntil(t, patience, "no boot", func() bool {
		return r.nodeOf(t, made.ID).State == provisioners.NodePoweringUp
	})
	r.keepUntil(t, patience, "the node does not come up", func() bool {
		again, err := r.Create(t.Context(), "token-1", specOf("four"))
		require.NoError(t, err)
		require.Equal(t, made.ID, again.ID)
		return again.Phase == provisioners.Running
	}, made.ID)
	require.Equal(t, before+1, resumed(), "ResumeProgram ran again during the boot")
	means, err := r.Means(t.Context())
	require.NoError(t, err)
	require.Equal(t, slurm.WarmPowerUp, means.Warm)
	require.InDelta(t, 600, means.HeartbeatsPerHour, 1)
}

// reconfigure changes a line of slurm.conf until the end of the test.
func (r *realElastic) reconfigure(t *testing.T, from, to string) {
	t.Helper()
	path := filepath.Join(r.dir, "slurm.conf")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(before), from)
	write := func(text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		runAsRoot(t, "scontrol", "reconfigure")
	}
	write(strings.Replace(string(before), from, to, 1))
	t.Cleanup(func() { write(string(before)) })
	r.open(t)
}

// Without PrivateData=cloud 22.05 shows no node without power: the error says what to do.
func TestElasticHiddenNodes(t *testing.T) {
	r := newElastic(t)
	r.reconfigure(t, "PrivateData=cloud", "PrivateData=none")
	_, err := r.Create(t.Context(), "token-1", specOf("four"))
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "PrivateData=cloud")
}

// Where nodes are never suspended a heartbeat powers one up, and keeping it costs no other.
func TestElasticNeverSuspends(t *testing.T) {
	r := newElastic(t)
	r.reconfigure(t, "PartitionName=elastic", "PartitionName=elastic SuspendTime=INFINITE")
	made, _ := r.warm(t, "token-1")
	sent := r.heartbeats(t)
	r.keepFor(t, 25*time.Second, made.ID)
	require.Equal(t, sent, r.heartbeats(t))
	means, err := r.Means(t.Context())
	require.NoError(t, err)
	require.Zero(t, means.HeartbeatsPerHour)
	r.requireIdle(t, made.ID)
}

// A second process, which has no file of the first, goes on with the keeping.
func TestElasticAnotherHost(t *testing.T) {
	r := newElastic(t)
	made, _ := r.warm(t, "token-1")
	r.config.StateFile = filepath.Join(t.TempDir(), "slurm.json")
	r.open(t)
	again, err := r.Create(t.Context(), "token-1", specOf("four"))
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.True(t, made.CreatedAt.Equal(again.CreatedAt))
	r.keepFor(t, 25*time.Second, made.ID)
	r.requireIdle(t, made.ID)
	require.True(t, made.CreatedAt.Equal(func() time.Time {
		got, err := r.Get(t.Context(), made.ID)
		require.NoError(t, err)
		return got.CreatedAt
	}()), "the time of its beginning moved with the heartbeats")
	_, err = r.Create(t.Context(), "token-9", specOf("other"))
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err), "no node has the feature: %v", err)
}
