package jobscript_test

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runOfSlurm runs a script of Slurm as the second of two nodes with four GPUs each does.
func runOfSlurm(t *testing.T, shell, script string, env ...string) (out string, code int) {
	t.Helper()
	s, err := parse("#!" + shell + "\n#SBATCH -N 2\n" + script)
	require.NoError(t, err)
	command := s.Command("job.sh", nil)
	c := exec.Command(command[0], command[1:]...)
	c.Stdin = bytes.NewReader(s.Input)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "SLURM_NNODES=2", "SLURM_NODEID=1", "SLURM_PROCID=1",
		"SLURM_GPUS_ON_NODE=4", "CUDA_VISIBLE_DEVICES=a,b,c,d", "WORLD_SIZE=8"}, env...)
	text, err := c.CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return string(text), c.ProcessState.ExitCode()
}

func shells(t *testing.T) (found []string) {
	t.Helper()
	for _, name := range []string{"sh", "bash", "dash", "zsh", "ksh"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path+" -eu")
		}
	}
	require.NotEmpty(t, found)
	return found
}

// In a script of Slurm srun starts the tasks of the node, each of which finds its place among all.
func TestStepsOfAScript(t *testing.T) {
	t.Parallel()
	const say = `'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE ` +
		`$CUDA_VISIBLE_DEVICES; [ $SLURM_PROCID != 5 ] || exit 7'`
	two := []string{"SLURM_NTASKS=4", "SLURM_NTASKS_PER_NODE=2"}
	for _, shell := range shells(t) {
		for script, want := range map[string][]string{
			"srun sh -c " + say: {"2 0 4 2 0 4 2 a,b,c,d", "3 1 4 3 1 4 2 a,b,c,d"},
			"srun -u -N2 -n 2 --cpu-bind=none --mpi=pmix -c 8 --export=ALL -- sh -c " + say: {"1 0 2 1 0 2 1 a,b,c,d"},
			"srun --ntasks=8 --gpus-per-task=1 sh -c " + say + " || echo failed with $?": {"4 0 8 4 0 8 4 a",
				"5 1 8 5 1 8 4 b", "6 2 8 6 2 8 4 c", "7 3 8 7 3 8 4 d", "failed with 7"},
			"srun --mpi pmix --cpu-bind none --cpu_bind cores --mem-bind local --gpu-bind closest --hint nomultithread " +
				"--export ALL -n 4 -N 2 -c 8 -J step -K1 -vv --job-name=x sh -c " + say: {"2 0 4 2 0 4 2 a,b,c,d",
				"3 1 4 3 1 4 2 a,b,c,d"},
			"srun -n 08 -N02 --gpus-per-task 01 sh -c " + say + " || echo failed with $?": {"4 0 8 4 0 8 4 a",
				"5 1 8 5 1 8 4 b", "6 2 8 6 2 8 4 c", "7 3 8 7 3 8 4 d", "failed with 7"},
			"srun --ntasks-per-node 1 sh -c " + say + " &\nwait $!\necho $WORLD_SIZE": {"1 0 2 1 0 2 1 a,b,c,d", "8"},
		} {
			out, code := runOfSlurm(t, shell, script, two...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			slices.Sort(lines)
			require.Equal(t, want, lines, "%s: %s", shell, script)
			require.Zero(t, code, script)
		}
		out, code := runOfSlurm(t, shell, "echo in | srun --ntasks-per-node=1 cat\nsrun sh -c 'exit 3'", two...)
		require.Equal(t, "in\n", out, shell)
		require.Equal(t, 3, code)
	}
}

// Steps that cannot be had are refused in a word, and so is what else there is of Slurm.
func TestStepsThatCannotBeHad(t *testing.T) {
	t.Parallel()
	for _, shell := range shells(t) {
		for script, says := range map[string]string{
			"srun -n 1 true":                   "srun: -n 1 on 2 nodes: the script runs once on each node",
			"srun --nodes=1 -w host true":      "srun: --nodes 1 on 2 nodes",
			"srun -w host true":                "srun: -w: ",
			"srun --export=NONE true":          "srun: --export=NONE: ",
			"srun -n many true":                "srun: -n many: ",
			"srun -n 0 true":                   "srun: -n 0: ",
			"srun -n00 true":                   "srun: -n 0: ",
			"srun --ntasks-per-node=0 true":    "srun: --ntasks-per-node 0: ",
			"srun --gpus-per-task 0 true":      "srun: --gpus-per-task 0: ",
			"srun -n 99999999 true":            "srun: -n 99999999: ",
			"srun --export NONE true":          "srun: --export=NONE: ",
			"srun -n":                          "srun: -n : ",
			"srun --mpi pmix":                  "srun: there is no command: ",
			"srun --gpus-per-task=3 -n 4 true": "srun: 2 tasks with 3 GPUs each, on a node with 4: ",
			"srun":                             "srun: there is no command: ",
			"scontrol requeue 1":               "of it there is show hostnames alone",
			"x=$(scontrol show hostnames)":     "nobody knows the addresses",
		} {
			out, code := runOfSlurm(t, shell, script+"\necho goes on")
			require.Contains(t, out, says, "%s: %s", shell, script)
			require.NotContains(t, out, "goes on")
			require.NotZero(t, code)
		}
	}
}

// The idiom by which scripts of Slurm find where their processes meet works, and so do numbers of lines.
func TestHostsOfAScript(t *testing.T) {
	t.Parallel()
	for _, shell := range shells(t) {
		out, code := runOfSlurm(t, shell, "echo $(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"+
			"scontrol show hostnames\nnosuchprogram", "SLURM_JOB_NODELIST=10.0.0.1,10.0.0.2")
		require.Contains(t, out, "10.0.0.1\n10.0.0.1\n10.0.0.2\n", shell)
		require.Equal(t, 127, code)
		if !strings.Contains(shell, "ksh") {
			require.Regexp(t, `5.*nosuchprogram`, out, shell)
		}
	}
}

// Whoever asked for more memory than goes with its GPUs is told so where it runs.
func TestMemoryOfAScript(t *testing.T) {
	t.Parallel()
	for _, shell := range shells(t) {
		for env, says := range map[string]string{"SLURM_MEM_PER_NODE=2000": "asks for 2000 MiB of memory, and has 1024 MiB",
			"SLURM_MEM_PER_NODE=1024": "", "SLURM_MEM_PER_GPU=300": "asks for 1200 MiB", "A=": ""} {
			out, code := runOfSlurm(t, shell, "true", "FOREWARM_MEMORY_BYTES=1073741824", env)
			require.Zero(t, code)
			if says == "" {
				require.Empty(t, out, "%s %s", shell, env)
			} else {
				require.Contains(t, out, says, shell)
			}
		}
	}
}
