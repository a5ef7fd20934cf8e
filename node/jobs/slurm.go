package jobs

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// addSlurm gives a job that was written for Slurm the variables that its script reads, as a batch script there finds
// them on each of its nodes. What the job brings itself is left alone; among that are SLURM_NTASKS and what else its
// script has asked for, which Slurm sets only where a script says so, too.
//
// It leaves out what makes programs ask srun to start their processes: SLURM_JOBID (which Open MPI's mpirun looks for),
// SLURM_NODELIST and SLURM_TASKS_PER_NODE (which those of MPICH and Intel do), and all of SLURM_STEP_*.
func addSlurm(env map[string]string, o contract.JobOrder) {
	if !o.Slurm {
		return
	}
	nodes, rank := o.HoldEnvironment["NNODES"], strconv.Itoa(o.Rank)
	name, _ := os.Hostname()
	addMissing(env, map[string]string{
		"SLURM_JOB_ID":           o.JobID,
		"SLURM_JOB_NAME":         env["FOREWARM_JOB_NAME"],
		"SLURM_JOB_NUM_NODES":    nodes,
		"SLURM_JOB_NODELIST":     strings.Join(o.Hosts, ","),
		"SLURM_JOB_GPUS":         joined(o.GPUIndices),
		"SLURM_NNODES":           nodes,
		"SLURM_NODEID":           rank,
		"SLURM_PROCID":           procID(env, o.Rank),
		"SLURM_LOCALID":          "0",
		"SLURM_GPUS_ON_NODE":     strconv.Itoa(len(o.GPUUUIDs)),
		"SLURM_RESTART_COUNT":    strconv.Itoa(o.Attempt - 1),
		"SLURM_SUBMIT_DIR":       o.Directory, // where it begins is all that is known to be on the node
		"SLURMD_NODENAME":        name,
		"SLURM_ARRAY_JOB_ID":     env["FOREWARM_ARRAY_ID"],
		"SLURM_ARRAY_TASK_ID":    env["FOREWARM_ARRAY_INDEX"],
		"SLURM_ARRAY_TASK_COUNT": env["FOREWARM_ARRAY_COUNT"],
		"SLURM_ARRAY_TASK_MIN":   env["FOREWARM_ARRAY_FIRST"],
		"SLURM_ARRAY_TASK_MAX":   env["FOREWARM_ARRAY_LAST"],
	})
}

// procID is the number of the first task of a node.
func procID(env map[string]string, rank int) string {
	perNode, err := strconv.Atoi(env["SLURM_NTASKS_PER_NODE"])
	if err != nil {
		perNode = 1
	}
	return strconv.Itoa(rank * perNode)
}

func joined(numbers []int) string {
	texts := slices.Collect(func(yield func(string) bool) {
		for _, n := range numbers {
			if !yield(strconv.Itoa(n)) {
				return
			}
		}
	})
	return strings.Join(texts, ",")
}
