package jobs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/jobs"
)

// attemptOf is an order of another attempt, whose job waits until the pipe is written to.
func (n *node) attemptOf(number int, pipe string) contract.JobOrder {
	o := order("echo out; echo err >&2; cat " + pipe)
	o.Attempt = number
	return o
}

// runAttempt runs an attempt, and returns the process that ran it.
func (n *node) runAttempt(number int, pipe string) (runner int) {
	n.Helper()
	o := n.attemptOf(number, pipe)
	n.answer(0, o)
	n.await(func() bool {
		return n.server.got(o.JobKey, "stdout") == "out\n" && n.server.got(o.JobKey, "stderr") == "err\n"
	})
	runner = n.runnerOf(o.JobKey)
	require.NotZero(n, runner)
	require.NoError(n, os.WriteFile(pipe, nil, 0))
	require.Zero(n, n.awaitEnd(o.JobKey))
	return runner
}

// A runner runs one attempt after another, and has nothing of those before; two at a time have two runners.
func TestARunnerRunsOneAttemptAfterAnother(t *testing.T) {
	n := newNode(t)
	pipe, other := n.newPipe("pipe"), n.newPipe("other")
	runner := n.runAttempt(1, pipe)
	require.Equal(t, runner, n.runAttempt(2, pipe))
	n.answer(0, n.attemptOf(3, pipe))
	second := contract.JobKey{JobID: "job_1", Attempt: 3}
	n.await(func() bool { return n.runnerOf(second) == runner && n.server.got(second, "") != "" })
	require.NotEqual(t, runner, n.runAttempt(4, other))
	require.NoError(t, os.WriteFile(pipe, nil, 0))
	require.Zero(t, n.awaitEnd(second))
}

// An attempt of which something is left is its runner's last, and one that has ended meanwhile is given no more.
func TestARunnerThatIsNotAsBeforeIsNotUsedAgain(t *testing.T) {
	n := newNode(t)
	pipe := n.newPipe("pipe")
	runner := n.runAttempt(1, pipe)
	o := order("sleep 1000 & exit")
	o.Attempt = 2
	require.NotEmpty(t, n.run(o).Reason)
	after := n.runAttempt(3, pipe)
	require.NotEqual(t, runner, after)
	require.NoError(t, syscall.Kill(after, syscall.SIGKILL))
	n.await(func() bool { return syscall.Kill(after, 0) != nil })
	require.NotEqual(t, after, n.runAttempt(4, pipe))
}

// A runner that waits ends with its daemon, and one that runs an attempt after that.
func TestARunnerEndsAfterItsDaemon(t *testing.T) {
	n := newNode(t)
	pipe := n.newPipe("pipe")
	runner := n.runAttempt(1, pipe)
	n.begin()
	n.await(func() bool { return syscall.Kill(runner, 0) != nil })
	o := n.attemptOf(2, pipe)
	n.answer(0, o)
	n.await(func() bool { return n.server.got(o.JobKey, "") != "" })
	runner = n.runnerOf(o.JobKey)
	n.begin()
	require.Equal(t, runner, n.runnerOf(o.JobKey))
	require.NoError(t, os.WriteFile(pipe, nil, 0))
	require.Zero(t, n.awaitEnd(o.JobKey))
	n.await(func() bool { return syscall.Kill(runner, 0) != nil })
}

// Nobody but the daemon has a runner run anything, and not twice.
func TestARunnerIsTheDaemonsAlone(t *testing.T) {
	n := newNode(t)
	require.Zero(t, n.run(order("echo once")))
	out, err := exec.Command(n.runner[0], "job").CombinedOutput()
	require.Error(t, err)
	require.Equal(t, "jobs are run by the daemon alone\n", string(out))
	for want, locked := range map[string][2]string{
		"it was started before\n":            {"lock", "begin"},
		"jobs are run by the daemon alone\n": {"lock", "lock"},
	} {
		require.Equal(t, want, n.tellByHand(first, locked))
	}
}

// tellByHand has a runner run an attempt, with two of its files as those that it locks, and returns what it says.
func (n *node) tellByHand(key contract.JobKey, locked [2]string) string {
	n.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(n, err)
	ours, theirs := os.NewFile(uintptr(pair[0]), ""), os.NewFile(uintptr(pair[1]), "")
	said := filepath.Join(n.dir, "said")
	var numbers []int
	for _, path := range []string{filepath.Join(n.folder(key), locked[0]), filepath.Join(n.folder(key), locked[1]), said} {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(n, err)
		defer func() { require.NoError(n, f.Close()) }()
		numbers = append(numbers, int(f.Fd()))
	}
	require.NoError(n, os.Truncate(said, 0))
	require.NoError(n, unix.Sendmsg(pair[0], []byte(n.folder(key)), unix.UnixRights(numbers...), nil, 0))
	runner := exec.Command(n.runner[0], n.runner[1:]...)
	runner.ExtraFiles = []*os.File{theirs}
	require.Error(n, runner.Run())
	require.NoError(n, ours.Close())
	require.NoError(n, theirs.Close())
	text, err := os.ReadFile(said)
	require.NoError(n, err)
	return string(text)
}

// An attempt whose runner cannot be started says why.
func TestAnAttemptWithoutARunnerSaysWhy(t *testing.T) {
	n := newNode(t)
	n.keeper.Close()
	n.runner = []string{"/nowhere"}
	n.open(jobs.Config{Holds: n.holds})
	got := n.run(order("echo no"))
	require.Equal(t, contract.JobNotStarted, got.Code)
	require.Contains(t, got.Reason, "starting the runner of the job")
}
