//go:build slurm

package slurm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

func specOf(kind string) provisioners.Spec {
	return provisioners.Spec{Type: kind, Owner: "dep", NodeID: "nod_1"}
}

func (r *real) createInstance(t *testing.T, token string, spec provisioners.Spec) provisioners.Instance {
	t.Helper()
	made, err := r.Create(t.Context(), token, spec)
	require.NoError(t, err)
	return made
}

// awaitPhase waits for a phase; a machine that is not found counts as Terminated.
func (r *real) awaitPhase(t *testing.T, id string, phase provisioners.Phase,
	limit time.Duration) provisioners.Instance {
	t.Helper()
	var got provisioners.Instance
	waitUntil(t, limit, "machine "+id+" does not become "+string(phase), func() bool {
		var err error
		got, err = r.Get(t.Context(), id)
		if provisioners.KindOf(err) == provisioners.KindNotFound && err != nil {
			return phase == provisioners.Terminated
		}
		require.NoError(t, err)
		return got.Phase == phase
	})
	return got
}

// runInAllocation runs a step in a machine's allocation, as its user would by the address.
func runInAllocation(ctx context.Context, address, command string) *exec.Cmd {
	_, job, _ := strings.Cut(address, "?job=")
	run := exec.CommandContext(ctx, "runuser", "-u", "nobody", "--", "srun", "--jobid="+job, "--overlap", "--chdir=/",
		"--gres=gpu:a100:2", "sh", "-c", command)
	run.Dir = "/"
	return run
}

// A node without power, which no list shows, is offered, booted for the
// placeholder, and used.
func TestRealPowerSaving(t *testing.T) {
	t.Parallel()
	c := realConfig(t, "cloud")
	r := &real{config: c}
	r.openCluster(t)
	t.Cleanup(func() { cancelPartitionJobs(t, "cloud") })
	require.NotContains(t, runAsRoot(t, "sinfo", "--noheader", "--partition=cloud"), "c1")
	offers, err := r.Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 2)

	made := r.createInstance(t, "token-1", specOf("two"))
	require.Equal(t, provisioners.Booting, made.Phase)
	up := r.awaitPhase(t, made.ID, provisioners.Running, patience)
	require.Equal(t, "slurm://c1?job="+jobOf(made.ID), up.Address)
	require.Len(t, up.Devices, 2)
	require.Equal(t, "GPU-c1-0000-0000-0", up.Devices[0].UUID)
	require.Equal(t, "a100-80g", up.Devices[0].Model)
	require.Equal(t, 81_559, up.Devices[0].MemoryMiB)

	said, err := runInAllocation(t.Context(), up.Address,
		"echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES").CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Equal(t, "c1 0,1\n", string(said))
}

// Two machines share a node without sharing a GPU, though each probe sees all.
func TestRealMachinesShareANode(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	first, second := r.createInstance(t, "token-1", specOf("two")), r.createInstance(t, "token-2", specOf("two"))
	seen := map[string]bool{}
	for _, id := range []string{first.ID, second.ID} {
		for _, device := range r.awaitPhase(t, id, provisioners.Running, patience).Devices {
			seen[device.UUID] = true
		}
	}
	require.Len(t, seen, 4)
}

// The dead-man switch spares a machine on which somebody's step runs.
func TestRealExpiryWaitsForSteps(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	spec := specOf("two")
	spec.ExpiresAt = time.Now().Add(30 * time.Second) // by then it must run
	made := r.createInstance(t, "token-1", spec)
	up := r.awaitPhase(t, made.ID, provisioners.Running, patience)
	const longer = 3 * time.Second
	step := runInAllocation(t.Context(), up.Address, fmt.Sprint("sleep ",
		int((time.Until(spec.ExpiresAt)+longer).Seconds())+1))
	said, err := step.CombinedOutput()
	require.NoError(t, err, "the step was killed: %s", said)
	require.True(t, time.Now().After(spec.ExpiresAt.Add(longer)))
	ended := r.awaitPhase(t, made.ID, provisioners.Terminated, patience)
	require.True(t, ended.EndedAt.After(spec.ExpiresAt))
}

// Two processes that know nothing of each other ask for the same token at the
// same moment: one machine, one answer.
func TestRealRaceOfTwoProcesses(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	others := []*real{r}
	for range 3 {
		c := r.config
		c.StateFile = ""
		other := &real{config: c}
		other.openCluster(t)
		others = append(others, other)
	}
	ids, errs := make([]string, len(others)), make([]error, len(others))
	var group sync.WaitGroup
	for i, other := range others {
		group.Go(func() {
			made, err := other.Create(t.Context(), "token-1", specOf("one"))
			ids[i], errs[i] = made.ID, err
		})
	}
	group.Wait()
	for i := range others {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], ids[i])
	}
	list, err := r.List(t.Context(), "dep")
	require.NoError(t, err)
	require.Len(t, list.Instances, 1)
	waitUntil(t, patience, "a duplicate lives on", func() bool {
		return len(strings.Fields(runAsRoot(t, "squeue", "--noheader", "--partition="+r.config.Offers[0].Partition,
			"--format=%i"))) == 1
	})
}

// Slurm forgets an ended job; its token is remembered. A live job is found
// without any memory.
func TestRealMemory(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	old, live := r.createInstance(t, "token-1", specOf("one")), r.createInstance(t, "token-2", specOf("one"))
	require.NoError(t, r.Delete(t.Context(), old.ID))
	waitUntil(t, patience, "Slurm does not forget", func() bool {
		return exec.Command("squeue", "--noheader", "--states=all", "--jobs="+jobOf(old.ID)).Run() != nil
	})
	for range 2 {
		got, err := r.Get(t.Context(), old.ID)
		require.NoError(t, err)
		require.Equal(t, provisioners.Terminated, got.Phase)
		require.Equal(t, old.ID, r.createInstance(t, "token-1", specOf("one")).ID, "a late duplicate made a machine")
		r.openCluster(t)
	}
	r.config.StateFile = ""
	r.openCluster(t)
	require.Equal(t, live.ID, r.createInstance(t, "token-2", specOf("one")).ID)
	_, err := r.Get(t.Context(), old.ID)
	require.Equal(t, provisioners.KindNotFound, provisioners.KindOf(err))
}

// What cannot be had is said at once, or after the pending timeout.
func TestRealRefusals(t *testing.T) {
	t.Parallel()
	r := newReal(t, func(c *slurm.Config) {
		c.PendingTimeout, c.QueueWhenFull = time.Second, true
		partition := c.Offers[0].Partition
		c.Offers = append(c.Offers,
			slurm.Offer{Type: "too-many", Partition: partition, Model: "m", GPUs: 5},
			slurm.Offer{Type: "other-gpu", Partition: partition, Gres: "gpu:h100", Model: "m", GPUs: 1},
			slurm.Offer{Type: "nowhere", Partition: "nowhere", Model: "m", GPUs: 1},
			slurm.Offer{Type: "feature", Partition: partition, Model: "m", GPUs: 1, Constraint: "none-such"},
			slurm.Offer{Type: "reservation", Partition: partition, Model: "m", GPUs: 1, Reservation: "none-such"})
	})
	offers, err := r.Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 4, "what no node has is not offered: %v", offers)
	for _, kind := range []string{"too-many", "other-gpu", "nowhere", "feature", "reservation"} {
		_, err := r.Create(t.Context(), "token-"+kind, specOf(kind))
		require.Equal(t, provisioners.KindBadSpec, provisioners.KindOf(err), "%s: %v", kind, err)
	}
	partition := r.config.Offers[0].Partition
	theirs := submitForeignJob(t, "--partition="+partition, "--gres=gpu:a100:4")
	waitUntil(t, patience, "the node does not fill", func() bool {
		return strings.TrimSpace(runAsRoot(t, "squeue", "--noheader", "--jobs="+theirs, "--format=%T")) == "RUNNING"
	})
	made := r.createInstance(t, "token-1", specOf("two"))
	ended := r.awaitPhase(t, made.ID, provisioners.Terminated, patience)
	require.Empty(t, ended.Devices)

	r.config.QueueWhenFull = false
	r.openCluster(t)
	_, err = r.Create(t.Context(), "token-2", specOf("two"))
	require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(err), "%v", err)
	runAsRoot(t, "scontrol", "update", "partition="+partition, "state=drain")
	defer runAsRoot(t, "scontrol", "update", "partition="+partition, "state=up")
	r.config.QueueWhenFull = true
	r.openCluster(t)
	_, err = r.Create(t.Context(), "token-3", specOf("two"))
	require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(err), "%v", err)
}

// A draining node and a preemption are announced while the machine runs.
func TestRealNotices(t *testing.T) {
	t.Parallel()
	r := &real{config: realConfig(t, "n5")}
	r.config.Offers[0].PreemptionWarning = 30 * time.Second // GraceTime of the partition
	r.openCluster(t)
	t.Cleanup(func() { cancelPartitionJobs(t, "high"); cancelPartitionJobs(t, "n5") })
	made := r.createInstance(t, "token-1", specOf("two"))
	require.Nil(t, r.awaitPhase(t, made.ID, provisioners.Running, patience).Notice)

	runAsRoot(t, "scontrol", "update", "nodename=n5", "state=drain", "reason=fans are loud")
	got, err := r.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, provisioners.Running, got.Phase)
	require.Equal(t, provisioners.NoticeDegraded, got.Notice.Kind)
	require.Contains(t, got.Notice.Message, "fans are loud")
	runAsRoot(t, "scontrol", "update", "nodename=n5", "state=resume")

	submitForeignJob(t, "--partition=high", "--gres=gpu:a100:4")
	waitUntil(t, patience, "the preemption is not announced", func() bool {
		got, err = r.Get(t.Context(), made.ID)
		require.NoError(t, err)
		return got.Notice != nil && got.Notice.Kind == provisioners.NoticeInterruption
	})
	require.Equal(t, provisioners.Running, got.Phase)
	require.True(t, got.Notice.At.After(got.CreatedAt), "%+v of %v", got.Notice, got.CreatedAt)
}

// A node without the probe's program serves only where that is allowed, and then
// says what its UUIDs are; a probe that fails ends the machine.
func TestRealProbes(t *testing.T) {
	t.Parallel()
	r := newReal(t, func(c *slurm.Config) { c.Probe, c.AllowUnprobed = []string{"no-such-program"}, true })
	up := r.awaitPhase(t, r.createInstance(t, "token-1", specOf("two")).ID, provisioners.Running, patience)
	require.Len(t, up.Devices, 2)
	require.Contains(t, up.Devices[0].UUID, "GPU-UNPROBED-")
	require.NotEqual(t, up.Devices[0].UUID, up.Devices[1].UUID)

	r.config.AllowUnprobed, r.config.ProbeTimeout = false, time.Second
	r.openCluster(t)
	made := r.createInstance(t, "token-2", specOf("two"))
	require.Equal(t, provisioners.Terminated, r.awaitPhase(t, made.ID, provisioners.Terminated, patience).Phase)
}

// Who may not do it is told so, and an unreachable controller is no absence.
func TestRealRightsAndConnections(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	made := r.createInstance(t, "token-1", specOf("one"))
	stranger := r.config
	stranger.CommandPrefix, stranger.StateFile = []string{"runuser", "-u", "daemon", "--"}, ""
	other, err := slurm.New(stranger, clock.System{})
	require.NoError(t, err)
	require.Equal(t, provisioners.KindDenied, provisioners.KindOf(other.Delete(t.Context(), made.ID)))

	conf, err := os.ReadFile(r.config.SlurmConf)
	require.NoError(t, err)
	nobodyListens := filepath.Join(t.TempDir(), "slurm.conf")
	text := strings.Replace(string(conf), "SlurmctldPort=", "SlurmctldPort=1 #", 1) + "MessageTimeout=1\n"
	require.NoError(t, os.WriteFile(nobodyListens, []byte(text), 0o600))
	stranger.CommandPrefix, stranger.SlurmConf = nil, nobodyListens
	other, err = slurm.New(stranger, clock.System{})
	require.NoError(t, err)
	_, err = other.Get(t.Context(), made.ID)
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err), "%v", err)
	_, err = other.List(t.Context(), "dep")
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(err), "%v", err)
}
