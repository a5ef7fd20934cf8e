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
		HoldEnvironment: map[string]string{"NNODES": "3"}, Directory: "/data",
		Environment: map[string]string{"FOREWARM_JOB_NAME": "train", "FOREWARM_ARRAY_ID": "arr_1",
			"FOREWARM_ARRAY_INDEX": "7", "FOREWARM_ARRAY_COUNT": "9", "SLURM_LOCALID": "mine"}}
	require.NotContains(t, environmentOf(o), "SLURM_JOB_ID", "nobody asked")
	o.Slurm = true
	got := environmentOf(o)
	for name, want := range map[string]string{"SLURM_JOB_ID": "job_1", "SLURM_JOB_NAME": "train", "SLURM_NNODES": "3",
		"SLURM_JOB_NUM_NODES": "3", "SLURM_NODEID": "1", "SLURM_PROCID": "1", "SLURM_LOCALID": "mine",
		"SLURM_GPUS_ON_NODE": "2", "SLURM_RESTART_COUNT": "1", "SLURM_SUBMIT_DIR": "/data", "SLURM_ARRAY_JOB_ID": "arr_1",
		"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "9"} {
		require.Equal(t, want, got[name], name)
	}
	for _, name := range []string{"SLURM_NTASKS", "SLURM_JOBID", "SLURM_NODELIST", "SLURM_JOB_NODELIST",
		"SLURM_ARRAY_TASK_MIN"} {
		require.NotContains(t, got, name)
	}
}
