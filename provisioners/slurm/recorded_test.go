package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/forklock"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/slurm"
)

// recording is when the outputs in testdata were recorded.
var recording = time.Unix(1795278727, 0).UTC()

// replayCluster is a cluster whose commands print what the scripts say: names of files
// of testdata, or lines of sh.
func replayCluster(t *testing.T, scripts map[string]string, spoil ...func(*slurm.Config)) *slurm.Cluster {
	t.Helper()
	dir := t.TempDir()
	testdata, err := filepath.Abs("testdata")
	require.NoError(t, err)
	for name, script := range scripts {
		if _, err := os.Stat(filepath.Join(testdata, script)); err == nil {
			script = fmt.Sprintf("cat '%s'", filepath.Join(testdata, script))
		}
		require.NoError(t, forklock.WriteProgram(filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n"))
	}
	c := testConfig(folder(dir))
	c.StateFile, c.Offers[0].Partition, c.Offers[1].Partition = "", "n1", "n1"
	for _, spoil := range spoil {
		spoil(&c)
	}
	cluster, err := slurm.New(c, clock.NewManual(recording))
	require.NoError(t, err)
	return cluster
}

func recordedScripts(more map[string]string) map[string]string {
	scripts := map[string]string{
		"squeue": "squeue-22.05.8.txt", "sinfo": "sinfo-22.05.8.txt", "sacct": "sacct-22.05.8.txt",
		"scontrol": "partition-22.05.8.txt", "scancel": "exit 0", "sbatch": "exit 1",
	}
	for name, script := range more {
		scripts[name] = script
	}
	return scripts
}

// The real thing's rows: waiting, booting, starting, running and ended
// placeholders, and a job of somebody who likes quotes and bars.
func TestRecordedJobs(t *testing.T) {
	t.Parallel()
	list, err := replayCluster(t, recordedScripts(nil)).List(t.Context(), "dep")
	require.NoError(t, err)
	require.True(t, list.Complete)
	born := time.Unix(1795278723, 0).UTC()
	bare := func(job string, mark string, n int, phase provisioners.Phase) provisioners.Instance {
		return provisioners.Instance{ID: job + "-" + mark, Token: fmt.Sprint("token-", n), Owner: "dep",
			NodeID: fmt.Sprint("nod_", n),
			Type:   "a100-2", Phase: phase, CreatedAt: born}
	}
	running := bare("1", "7b595a319b05a67c", 1, provisioners.Running)
	running.Address = "slurm://n1?job=1"
	running.Devices = []capacity.Device{
		{UUID: "GPU-n1-0000-0000-0", Index: 0, Model: "a100-80g", MemoryMiB: 81_559},
		{UUID: "GPU-n1-0000-0000-1", Index: 1, Model: "a100-80g", MemoryMiB: 81_559},
	}
	running.Notice = &provisioners.Notice{Kind: provisioners.NoticeDegraded,
		Message: "node n1 is allocated+drain: fans are loud"}
	ended := bare("5", "92ff2c4443db133c", 5, provisioners.Terminated)
	ended.EndedAt = time.Unix(1795278726, 0).UTC()
	preempted := bare("7", "cd68d60db205f8cc", 7, provisioners.Running)
	preempted.CreatedAt = time.Unix(1795278724, 0).UTC()
	preempted.Address = "slurm://n5?job=7"
	preempted.Notice = &provisioners.Notice{Kind: provisioners.NoticeInterruption, At: time.Unix(1795278756, 0).UTC(),
		Message: "Slurm is preempting the job"}
	require.Len(t, list.Instances, 6)
	preempted.Devices = list.Instances[5].Devices
	require.Equal(t, []provisioners.Instance{
		running, bare("2", "a0de1973bfad4cc7", 2, provisioners.Booting),
		bare("3", "59074b664d4c0276", 3, provisioners.Booting),
		bare("4", "4cc968f57e9662ff", 4, provisioners.Booting), ended, preempted,
	}, list.Instances)
	require.Len(t, preempted.Devices, 2)
	require.Contains(t, preempted.Devices[1].UUID, "GPU-UNPROBED-")
	require.Equal(t, 81_920, preempted.Devices[1].MemoryMiB)
}

// A draining node takes nothing, an idle one does. Job 3 waits for 2 GPUs too, so
// that a node with 2 or 3 free ones is full. What no node has is not offered.
func TestRecordedNodes(t *testing.T) {
	t.Parallel()
	spec := provisioners.Spec{Type: "a100-2", Owner: "dep", NodeID: "nod_9"}
	create := func(partition string, more map[string]string) error {
		cluster := replayCluster(t, recordedScripts(more), func(c *slurm.Config) { c.Offers[1].Partition = partition })
		_, err := cluster.Create(t.Context(), "token-9", spec)
		return err
	}
	refuses := map[string]string{"sbatch": "echo 'sbatch: error: Batch job submission failed: Slurm backup " +
		"controller in standby mode' >&2; exit 1"}
	for _, partition := range []string{"n1", "n2", "n4", "n5"} {
		require.Equal(t, provisioners.KindCapacity, provisioners.KindOf(create(partition, refuses)), partition)
	}
	require.Equal(t, provisioners.KindTransient, provisioners.KindOf(create("n3", refuses)),
		"there is room, so sbatch was asked")
	offers, err := replayCluster(t, recordedScripts(nil),
		func(c *slurm.Config) { c.Offers[0].GPUs = 8 }).Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 1)
}

// Accounting knows the token of a job that squeue has forgotten, by its name,
// also when the job was renewed; one that runs has not ended.
func TestRecordedAccounting(t *testing.T) {
	t.Parallel()
	scripts := recordedScripts(map[string]string{"squeue": "exit 0"})
	cluster := replayCluster(t, scripts, func(c *slurm.Config) { c.Accounting = true; c.Offers[1].Partition = "n2" })
	spec := provisioners.Spec{Type: "a100-2", Owner: "dep", NodeID: "nod_1"}
	made, err := cluster.Create(t.Context(), "token-1", spec)
	require.NoError(t, err)
	require.Equal(t, provisioners.Instance{
		ID: "17-7b595a319b05a67c", Token: "token-1", Owner: "dep", NodeID: "nod_1", Type: "a100-2",
		Phase:     provisioners.Terminated,
		CreatedAt: time.Unix(1795278759, 0).UTC(), EndedAt: time.Unix(1795278762, 0).UTC(),
	}, made)
	_, err = cluster.Create(t.Context(), "token-2", spec)
	require.Equal(t, provisioners.KindUnknown, provisioners.KindOf(err), "sbatch was asked: %v", err)
}
