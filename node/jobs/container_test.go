package jobs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/container"
	"github.com/forewarm/forewarm/node/hold"
)

// newNodeWithPodman is a node whose podman is the stand-in in testdata, and the folder in which that is.
func newNodeWithPodman(t *testing.T) (n *node, engine string) {
	t.Helper()
	engine, err := os.MkdirTemp("/var/tmp", "forewarm-engine-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(engine, 0o711)) //nolint:gosec // holders pass through it
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(engine)) })
	require.NoError(t, exec.Command("cp", "testdata/engine/podman", engine).Run()) //nolint:gosec // the test's own
	t.Setenv("PATH", engine+":"+os.Getenv("PATH"))
	n = newNodeWith(t, hold.Config{Containers: container.Config{Runtimes: container.Podman}})
	if n.holds.Isolation() == hold.EnvironmentOnly {
		t.Skip("only root gives containers users of their own")
	}
	require.Equal(t, "podman", n.holds.Runtime().Name)
	return n, engine
}

func said(t *testing.T, engine, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(engine, file)) //nolint:gosec // the test's own
	require.NoError(t, err)
	return string(text)
}

// A container has what a job without one has: input, variables, folder, user, output and exit code. It is removed.
func TestAJobInAContainer(t *testing.T) {
	n, engine := newNodeWithPodman(t)
	o := order("cat; pwd; id -u; echo $VALUE; echo err >&2; exit 7")
	o.Image, o.Input, o.Environment = "python:3.12", []byte("input\n"), map[string]string{"VALUE": `a "b" c=d`}
	require.Equal(t, contract.JobReport{ExitCode: 7}, n.run(o))
	home := filepath.Join(n.dir, "holds", alc(1))
	require.Regexp(t, "^input\n"+home+"\n19[0-9]{8}\n"+`a "b" c=d`+"\n$", n.server.got(first, "stdout"))
	require.Equal(t, "err\n", n.server.got(first, "stderr"))
	run := said(t, engine, "run")
	require.Contains(t, run, "\nnvidia.com/gpu=GPU-1\n")
	require.NotContains(t, run, `a "b"`, "anybody may read arguments")
	require.Equal(t, "forewarm-job_1-1-2\n", strings.ReplaceAll(said(t, engine, "removed"), "--force --time 0 ", ""))
}

// Its time limit reaches the whole process group inside, and its signal is not handed on by half.
func TestTheTimeOfAContainerIsOver(t *testing.T) {
	n, _ := newNodeWithPodman(t)
	o := order(`sh -c 'trap "echo saved; exit 3" TERM; echo up; sleep 1000 & wait'; code=$?; echo left $code; exit $code`)
	o.Command = []string{"sh", "-c", `trap : TERM; ` + o.Command[2]}
	o.Image, o.MaxRuntimeSeconds = "python:3.12", 2
	got := n.run(o)
	require.Equal(t, contract.JobTimeLimit, got.Code)
	require.Equal(t, 3, got.ExitCode)
	require.Equal(t, "up\nsaved\nleft 3\n", n.server.got(first, "stdout"))
}

func TestAContainerThatCannotStart(t *testing.T) {
	n, _ := newNodeWithPodman(t)
	o := order("echo no")
	o.Image = "missing"
	require.Equal(t, contract.JobReport{Code: "not_started",
		Reason: "podman could not start a container of missing (exit code 125): its output says why"}, n.run(o))
	require.Equal(t, "Error: there is no such image\n", n.server.got(first, ""))
	o.Attempt, o.Image, o.Mounts = 2, "python:3.12", []contract.JobMount{{Source: "/etc"}}
	require.Equal(t, contract.JobReport{Code: "not_started",
		Reason: "the folder /etc may not be mounted: its node allows none (container_mounts)"}, n.run(o))
}

// A hold whose container was left, as by a runner that was killed, is clean once that is gone.
func TestAContainerThatWasLeftEndsWithItsHold(t *testing.T) {
	n, engine := newNodeWithPodman(t)
	o := order("echo up; sleep 1000")
	o.Image = "python:3.12"
	n.answer(0, o)
	n.await(func() bool { return n.server.got(first, "") == "up\n" })
	runner, err := os.FindProcess(n.runnerOf(first))
	require.NoError(t, err)
	require.NoError(t, runner.Kill())
	require.Equal(t, contract.JobLost, n.awaitEnd(first).Code)
	require.Equal(t, "forewarm-job_1-1-2\n", said(t, engine, "containers"))
	n.holds.End([]string{alc(1)})
	n.await(func() bool { return n.holds.AwaitsLook() })
	n.holds.Look(contract.NodeLook{Source: "simulated"}, time.Now().Add(time.Second))
	require.Empty(t, n.holds.Cleaned()[0].Problem)
	require.Empty(t, said(t, engine, "containers"))
}
