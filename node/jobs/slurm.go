package jobs

import (
	"strconv"

	"github.com/forewarm/forewarm/contract"
)

// addSlurm gives a job that was written for Slurm the variables that its script reads, as a batch script there finds
// them with one task on each node. What the job brings itself is left alone.
//
// It leaves out what makes programs take themselves for tasks that srun has started, one for each GPU:
// SLURM_NTASKS (with which PyTorch Lightning starts no processes of its own), SLURM_JOBID and the lists of nodes
// (with which mpirun asks srun to start its processes), and all of SLURM_STEP_*.
func addSlurm(env map[string]string, o contract.JobOrder) {
	if !o.Slurm {
		return
	}
	nodes, rank := o.HoldEnvironment["NNODES"], strconv.Itoa(o.Rank)
	for name, value := range map[string]string{
		"SLURM_JOB_ID":           o.JobID,
		"SLURM_JOB_NAME":         env["FOREWARM_JOB_NAME"],
		"SLURM_JOB_NUM_NODES":    nodes,
		"SLURM_NNODES":           nodes,
		"SLURM_NODEID":           rank,
		"SLURM_PROCID":           rank,
		"SLURM_LOCALID":          "0",
		"SLURM_GPUS_ON_NODE":     strconv.Itoa(len(o.GPUUUIDs)),
		"SLURM_RESTART_COUNT":    strconv.Itoa(o.Attempt - 1),
		"SLURM_SUBMIT_DIR":       o.Directory, // where it begins is all that is known to be on the node
		"SLURM_ARRAY_JOB_ID":     env["FOREWARM_ARRAY_ID"],
		"SLURM_ARRAY_TASK_ID":    env["FOREWARM_ARRAY_INDEX"],
		"SLURM_ARRAY_TASK_COUNT": env["FOREWARM_ARRAY_COUNT"],
		"SLURM_ARRAY_TASK_MIN":   env["FOREWARM_ARRAY_FIRST"],
		"SLURM_ARRAY_TASK_MAX":   env["FOREWARM_ARRAY_LAST"],
	} {
		if _, given := env[name]; !given && value != "" {
			env[name] = value
		}
	}
}
