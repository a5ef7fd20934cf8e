package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
)

// A job for Slurm finds what a batch script there does, and nothing that makes programs wait for srun.
func TestVariablesOfSlurm(t *testing.T) {
	t.Parallel()
	o := contract.JobOrder{JobKey: contract.JobKey{JobID: "job_1", Attempt: 2}, Rank: 1, GPUUUIDs: []string{"a", "b"},
		HoldEnvironment: map[string]string{"NNODES": "3"}, Directory: "/data", GPUIndices: []int{4, 7},
		Hosts: []string{"h0", "h1", "h2"},
		Environment: map[string]string{"FOREWARM_JOB_NAME": "train", "FOREWARM_ARRAY_ID": "arr_1",
			"FOREWARM_ARRAY_INDEX": "7", "FOREWARM_ARRAY_COUNT": "9", "SLURM_LOCALID": "mine"}}
	require.NotContains(t, environmentOf(o), "SLURM_JOB_ID", "nobody asked")
	o.Slurm = true
	got := environmentOf(o)
	for name, want := range map[string]string{"SLURM_JOB_ID": "job_1", "SLURM_JOB_NAME": "train", "SLURM_NNODES": "3",
		"SLURM_JOB_NUM_NODES": "3", "SLURM_NODEID": "1", "SLURM_PROCID": "1", "SLURM_LOCALID": "mine",
		"SLURM_GPUS_ON_NODE": "2", "SLURM_RESTART_COUNT": "1", "SLURM_SUBMIT_DIR": "/data", "SLURM_ARRAY_JOB_ID": "arr_1",
		"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "9", "SLURM_JOB_NODELIST": "h0,h1,h2",
		"SLURM_JOB_GPUS": "4,7"} {
		require.Equal(t, want, got[name], name)
	}
	for _, name := range []string{"SLURM_NTASKS", "SLURM_JOBID", "SLURM_NODELIST", "SLURM_TASKS_PER_NODE",
		"SLURM_ARRAY_TASK_MIN"} {
		require.NotContains(t, got, name)
	}
	o.Environment["SLURM_NTASKS"], o.Environment["SLURM_NTASKS_PER_NODE"] = "12", "4"
	require.Equal(t, "4", environmentOf(o)["SLURM_PROCID"], "of the first task here")
	require.Equal(t, "12", environmentOf(o)["SLURM_NTASKS"])
}

// The only process of each node is told its place among all; where there may be others, their launcher tells them.
func TestRankOfTheOnlyProcess(t *testing.T) {
	t.Parallel()
	rank := func(nodes, gpus string, env map[string]string) string {
		got := environmentOf(contract.JobOrder{Rank: 2, Environment: env,
			HoldEnvironment: map[string]string{"NNODES": nodes, "WORLD_SIZE": gpus}})
		return got["RANK"] + " " + got["LOCAL_RANK"] + " " + got["LOCAL_WORLD_SIZE"]
	}
	require.Equal(t, "2 0 1", rank("3", "3", nil))
	require.Equal(t, "7 0 1", rank("3", "3", map[string]string{"RANK": "7"}))
	require.Equal(t, "  ", rank("2", "4", nil))
	require.Equal(t, "  ", rank("1", "1", nil))
}
