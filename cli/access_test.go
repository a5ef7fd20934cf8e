package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/exit"
)

// newTower is a town in which somebody holds a GPU of this machine.
func newTower(t *testing.T) *town {
	t.Helper()
	w := newTown(t)
	w.createTower()
	w.mustRun("allocate", "--gpus", "1", "--pool", "tower", "--name", "heron", "--wait")
	return w
}

// What a command on an allocation's GPUs sees is its environment, its input, and what
// was typed, word for word.
func TestSSHRunsThere(t *testing.T) {
	t.Parallel()
	w := newTower(t)
	uuid := w.mustRun("allocations", "show", "heron", "--jq", ".devices[0].uuid")
	w.stdin = "from here\n"
	w.mustRun("ssh", "heron", "--", "sh", "-c", `cat; echo "$CUDA_VISIBLE_DEVICES $NNODES $1"`, "sh", "it's $HOME")
	require.Equal(t, "from here\n"+uuid+" 1 it's $HOME\n", w.became[0])
	w.stdin = "echo $NODE_RANK $WORLD_SIZE\n"
	w.mustRun("ssh", "heron")
	require.Contains(t, w.became[1], "0 1\n", "a shell, too")
}

// A shell that evaluates what env prints has the same variables.
func TestEnvIsEvaluated(t *testing.T) {
	t.Parallel()
	w := newTower(t)
	out, err := exec.Command("sh", "-c", w.mustRun("env", "heron")+"\nenv").Output()
	require.NoError(t, err)
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "FOREWARM_ALLOCATION", "MASTER_PORT",
		"MASTER_ADDR", "NODE_RANK", "NNODES", "NPROC_PER_NODE", "WORLD_SIZE"} {
		require.Contains(t, string(out), "\n"+name+"="+w.mustRun("env", "heron", "--jq", "."+name)+"\n")
	}
}

// A machine that is another one is not taken for the server's, and a program that is
// not installed is named.
func TestSSHWithoutAWay(t *testing.T) {
	t.Parallel()
	w := newTower(t)
	viewer := w.mustRun("key", "create", "watch", "--role", "viewer", "--jq", ".secret")
	operator := w.env["FOREWARM_API_KEY"]
	w.env["FOREWARM_API_KEY"] = viewer
	for _, command := range []string{"env", "ssh"} {
		_, errs, code := w.runCommand(command, "heron")
		require.Equal(t, exit.Policy, code, errs)
		require.Contains(t, errs, "takes the role member")
	}
	w.env["FOREWARM_API_KEY"] = operator
	w.createPool()
	w.mustRun("allocate", "--gpus", "1", "--pool", "lab", "--name", "swift", "--wait")
	_, errs, code := w.runCommand("ssh", "swift")
	require.Equal(t, exit.Conflict, code, errs)
	require.Empty(t, w.became)
}

// The program takes this one's place, with its streams and its exit code.
func TestBecome(t *testing.T) {
	t.Parallel()
	if argv := os.Getenv("FOREWARM_TEST_BECOME"); argv != "" {
		err := becomeProgram(strings.Split(argv, "|"))
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(3)
	}
	run := func(argv string) (string, int) {
		self := exec.Command(os.Args[0], "-test.run", "^TestBecome$")
		self.Env, self.Stdin = append(os.Environ(), "FOREWARM_TEST_BECOME="+argv), strings.NewReader("in\n")
		out, err := self.CombinedOutput()
		require.Error(t, err)
		return string(out), self.ProcessState.ExitCode()
	}
	out, code := run("sh|-c|cat; echo err >&2; exit 7")
	require.Equal(t, "in\nerr\n", out)
	require.Equal(t, 7, code)
	out, code = run("no-such-program-here")
	require.Equal(t, "it is not installed here, or not in PATH", out)
	require.Equal(t, 3, code)
	_, code = run("sh|-c|kill -TERM $$")
	require.Equal(t, -1, code, "a signal's end is a signal's end")
}
