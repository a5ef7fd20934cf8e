//go:build slurm

package slurm_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

// boots counts how often ResumeProgram was called, for any node.
func (r *realElastic) boots(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "resumed"))
	require.True(t, err == nil || os.IsNotExist(err), "%v", err)
	return strings.Count(string(text), "\n")
}

// A node is cooled by no word to Slurm: a job that is queued by then still starts on it.
func TestElasticQueuedJobFindsCooledNode(t *testing.T) {
	r := newElastic(t)
	made, node := r.warm(t, "token-1")
	before := r.boots(t)
	job := r.submitPlain(t, "--gres=gpu:4", "--begin=now+6")
	require.NoError(t, r.Delete(t.Context(), made.ID))
	w := r.started(t, job)
	waitOf(t, w)
	require.Equal(t, node.Name, w.Nodes[0].Name)
	require.Equal(t, before, r.boots(t))
}

// A node that powers down is of no use until it is cold: another one is warmed.
func TestElasticPoweringDown(t *testing.T) {
	r := newElastic(t)
	made, node := r.warm(t, "token-1")
	require.NoError(t, r.Delete(t.Context(), made.ID))
	waitUntil(t, patience, "the node is not powered down", func() bool {
		return slices.ContainsFunc(r.observe(t, "").Nodes, func(n provisioners.ObservedNode) bool {
			return n.Name == node.Name && n.State == provisioners.NodePoweringDown
		})
	})
	other, err := r.Create(t.Context(), "token-2", specOf("four"))
	require.NoError(t, err)
	require.NotEqual(t, node.Name, r.nodeOf(t, other.ID).Name)
}

// A job that wants a node for itself, in the very second of a heartbeat, does not get that
// one: Slurm boots another, as it would have done without us. It never waits for longer,
// and a moment later it would have had the node that is kept.
func TestElasticExclusiveInAHeartbeat(t *testing.T) {
	r := newElastic(t)
	made, node := r.warm(t, "token-1")
	const boot = 75 * time.Second // what a job waits on a cold node here: until slurmctld's second round after the boot
	for _, late := range []time.Duration{0, 3 * time.Second} {
		var due time.Time
		r.keepUntil(t, patience, "no heartbeat is ahead", func() bool {
			due = r.nextBeat(t)
			left := time.Until(due)
			return left > 0 && left < 2*time.Second && r.nodeOf(t, made.ID).State == provisioners.NodeIdle
		}, made.ID)
		waitUntil(t, patience, "", func() bool { return time.Since(due) >= late })
		before := r.boots(t)
		w := r.started(t, r.submitPlain(t, "--exclusive"), made.ID)
		if wait := waitOf(t, w); w.Nodes[0].Name == node.Name {
			require.Equal(t, before, r.boots(t))
		} else {
			require.Zero(t, late, "the heartbeat was over")
			require.LessOrEqual(t, wait, boot)
		}
		job, _, _ := strings.Cut(w.ID, "@")
		runAsRoot(t, "scancel", job)
	}
}

// A node that has just been booted is nobody's: who wants all of it has it at once, and
// does not wait until slurmctld has launched the heartbeat that booted it, in a round that
// comes each 30 s. Of two boots within half of that, one would have to wait for most of it.
func TestElasticExclusiveAfterTheBoot(t *testing.T) {
	r := newElastic(t)
	var kept []string
	for _, token := range []string{"token-1", "token-2"} {
		made, node := r.warm(t, token)
		kept = append(kept, made.ID)
		w := r.started(t, r.submitPlain(t, "--exclusive", "--nodelist="+node.Name), kept...)
		require.LessOrEqual(t, waitOf(t, w), 14*time.Second)
		job, _, _ := strings.Cut(w.ID, "@")
		runAsRoot(t, "scancel", job)
	}
	before := r.boots(t)
	r.keepFor(t, 40*time.Second, kept...) // twice SuspendTime
	for _, id := range kept {
		r.requireIdle(t, id)
	}
	require.Equal(t, before, r.boots(t))
}

// nextBeat is when the next heartbeat may run.
func (r *realElastic) nextBeat(t *testing.T) time.Time {
	t.Helper()
	found := strings.Fields(runAsRoot(t, "env", "SLURM_TIME_FORMAT=%s", "squeue", "--noheader", "--user=nobody",
		"--partition=elastic", "--states=PENDING", "--format=%S", "--sort=S"))
	if len(found) == 0 {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(found[0], 10, 64)
	if err != nil {
		return time.Time{} // it has none yet
	}
	return time.Unix(seconds, 0)
}

// Only a node with the offer's features is warmed, and a job that wants them starts on it.
func TestElasticFeatures(t *testing.T) {
	r := newElastic(t, func(c *slurm.Config) { c.Offers[0].Constraint = "a100&nvlink" })
	runAsRoot(t, "scontrol", "update", "NodeName=e3", "AvailableFeatures=a100,nvlink")
	runAsRoot(t, "scontrol", "update", "NodeName=e3", "ActiveFeatures=a100,nvlink")
	t.Cleanup(func() {
		runAsRoot(t, "scontrol", "update", "NodeName=e3", "ActiveFeatures=a100")
		runAsRoot(t, "scontrol", "update", "NodeName=e3", "AvailableFeatures=a100")
	})
	made, node := r.warm(t, "token-1")
	require.Equal(t, "e3", node.Name)
	before := r.boots(t)
	w := r.started(t, r.submitPlain(t, "--gres=gpu:1", "--constraint=nvlink"), made.ID)
	waitOf(t, w)
	require.Equal(t, before, r.boots(t))
	require.Equal(t, "four", w.Type)
	_, err := r.Create(t.Context(), "token-2", specOf("four"))
	require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(err), "no other node has both: %v", err)
}

// What users write into their jobs, Slurm takes as it is, and no row is forged with it.
func TestElasticForgedRows(t *testing.T) {
	r := newElastic(t)
	before := r.observe(t, "")
	for _, text := range []string{"x\n9999\x1f9999\x1fRUNNING", "\x1f\x1f\n", "\n"} {
		r.submitPlain(t, "--gres=gpu:1", "--account="+text, "--job-name="+text, "--comment="+text)
	}
	array := r.submitPlain(t, "--array=1-900", "--gres=gpu:1", "--begin=now+3600")
	var work []provisioners.Work
	waitUntil(t, patience, "the array does not say why it waits", func() bool {
		work = r.observe(t, before.Mark).Work
		return slices.ContainsFunc(work, func(w provisioners.Work) bool {
			return strings.HasPrefix(w.ID, array+"_*@") && w.Waiting == provisioners.WaitDependencies
		})
	})
	require.Len(t, work, 4, "the tasks of an array that wait are one")
	for _, w := range work {
		require.NotContains(t, w.ID, "9999")
		require.Equal(t, plainUser, w.User)
	}
}

// Where the whole cluster never suspends a node it powers none up either, not even for a
// job: what is cold is not chosen, and the error says what to set.
func TestElasticWithoutPowerSaving(t *testing.T) {
	r := newElastic(t)
	r.reconfigure(t, "SuspendTime=18", "SuspendTime=INFINITE")
	_, err := r.Create(t.Context(), "token-1", specOf("four"))
	require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "SuspendTime")
}
