//go:build containers

package jobs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/container"
	"github.com/forewarm/forewarm/node/hold"
)

// image is one that has busybox, and nothing else.
const image = "localhost/forewarm-test-busybox:1"

// engines are the programs that run containers on this machine: podman, and docker where its daemon is there.
var engines = sync.OnceValue(func() (all []string) {
	for _, name := range []string{container.Podman, container.Docker} {
		if exec.Command(name, "info").Run() == nil {
			all = append(all, name)
		}
	}
	return all
})

// onEach runs a test on a node with each engine.
func onEach(t *testing.T, test func(t *testing.T, n *realNode)) {
	t.Helper()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) { test(t, newRealNode(t, engine)) })
	}
}

// realNode is a node with an engine of the machine's own.
type realNode struct {
	*node
	engine string
}

func newRealNode(t *testing.T, engine string) *realNode {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, exec.Command("sh", "-c", `mkdir $0/bin $0/tmp && cp "$(command -v busybox)" $0/bin/busybox &&
		for name in sh sleep cat id head tail env grep; do ln -s busybox $0/bin/$name; done &&
		tar -C $0 -cf $0.tar . && `+engine+` import $0.tar `+image, root).Run())
	n := newNodeWith(t, hold.Config{Containers: container.Config{Runtimes: engine}, Bounds: hold.Bounds{Memory: "128MiB"}})
	require.Equal(t, engine, n.holds.Runtime().Name)
	n.patience = 5 * time.Minute // on an emulated machine
	return &realNode{n, engine}
}

// boxed is a job with a script in a container, on simulated GPUs: real ones need entries of CDI.
func boxed(attempt int, script string) contract.JobOrder {
	o := order(script)
	o.Attempt, o.Image, o.GPUUUIDs = attempt, image, []string{"GPU-SIM-1"}
	return o
}

// containers are those of the allocation that there are, running or not.
func (n *realNode) containers() string {
	n.Helper()
	out, err := exec.Command(n.engine, "ps", "--all", "--quiet", "--filter", "label=forewarm.allocation="+alc(1)).Output()
	require.NoError(n, err)
	return string(out)
}

func TestRealContainers(t *testing.T) {
	onEach(t, func(t *testing.T, n *realNode) {
		o := boxed(1, "cat; pwd; id -u; cat /proc/self/cgroup; echo $VALUE; echo err >&2; exit 7")
		o.Input, o.Environment = []byte("input\n"), map[string]string{"VALUE": `a "b" c=d`}
		require.Equal(t, contract.JobReport{ExitCode: 7}, n.run(o))
		require.Regexp(t, "^input\n"+filepath.Join(n.dir, "holds", alc(1))+"\n19[0-9]{8}\n([1-9].*\n)*0::/\n"+
			`a "b" c=d`+"\n$", n.server.got(first, "stdout"))
		require.Equal(t, "err\n", n.server.got(first, "stderr"))

		o = boxed(2, `trap 'echo saved; exit 3' TERM; echo up; sleep 1000 & wait`)
		o.MaxRuntimeSeconds = 10
		got := n.run(o)
		require.Equal(t, contract.JobTimeLimit, got.Code)
		require.Equal(t, 3, got.ExitCode)
		require.Equal(t, "up\nsaved\n", n.server.got(o.JobKey, "stdout"))

		o = boxed(3, "true")
		o.Image = "localhost/forewarm-test-missing:1"
		require.Equal(t, contract.JobReport{Code: contract.JobNotStarted, Reason: n.engine +
			" could not start a container of " + o.Image + " (exit code 125): its output says why"}, n.run(o))
		require.NotEmpty(t, n.server.got(o.JobKey, "stderr"))
		require.Empty(t, n.containers())
		stuck, err := filepath.Glob("/sys/fs/cgroup/forewarm-holds/" + alc(1) + "-*/job-*")
		require.NoError(t, err)
		require.Empty(t, stuck)
	})
}

// The kernel ends all of a container whose memory is full.
func TestRealContainersOutOfMemory(t *testing.T) {
	onEach(t, func(t *testing.T, n *realNode) {
		if why := n.holds.Unbounded(); why != "" {
			t.Skip("memory is not bounded here: " + why)
		}
		o := boxed(1, "sleep 1000 & tail -c 300000000 /dev/zero; echo survived")
		require.Equal(t, contract.JobOutOfMemory, n.run(o).Code)
	})
}

// A member of a gang finds its place and its GPUs, and has no right that its user has not.
func TestRealContainersHaveAPlaceAndNoRights(t *testing.T) {
	onEach(t, func(t *testing.T, n *realNode) {
		o := boxed(1, "echo $RANK $WORLD_SIZE $MASTER_ADDR $FOREWARM_JOB_RANK; echo $CUDA_VISIBLE_DEVICES; "+
			"grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; echo mine >file && cat file; "+
			"(echo no >/etc-of-root) 2>/dev/null || echo kept out; umask")
		o.HoldEnvironment = map[string]string{"NNODES": "3", "WORLD_SIZE": "3", "MASTER_ADDR": "10.0.0.1",
			"CUDA_VISIBLE_DEVICES": "GPU-SIM-1"}
		require.Equal(t, contract.JobReport{}, n.run(o))
		require.Regexp(t, "^2 3 10.0.0.1 2\nGPU-SIM-1\nCapEff:\t0+\nCapBnd:\t0+\nNoNewPrivs:\t1\nmine\nkept out\n",
			n.server.got(first, "stdout"))
	})
}

// A daemon that is started anew finds the container running, and cancels it: a signal reaches the command before TERM
// does, and nothing of it is left.
func TestRealContainersOutliveTheDaemonAndAreCancelled(t *testing.T) {
	onEach(t, func(t *testing.T, n *realNode) { n.cancelAfterDaemon(t, false) })
	onEach(t, func(t *testing.T, n *realNode) { n.cancelAfterDaemon(t, true) })
}

func (n *realNode) cancelAfterDaemon(t *testing.T, leaderOnly bool) {
	t.Helper()
	o := boxed(1, "trap 'echo usr1' USR1; trap 'echo term; exit 4' TERM; echo up; while :; do :; done")
	n.answer(0, o)
	n.await(func() bool { return n.server.got(first, "") == "up\n" })
	n.begin()
	n.answer(0, o) // the server says it again
	stop := stopOf(o, 30)
	stop.Signal, stop.LeadSeconds, stop.LeaderOnly = "USR1", 1, leaderOnly
	n.keeper.Stop([]contract.JobStop{stop})
	got := n.awaitEnd(first)
	require.Equal(t, contract.JobStopped, got.Code)
	require.Equal(t, 4, got.ExitCode)
	require.Equal(t, "up\nusr1\nterm\n", n.server.got(first, ""), "leader only: %t", leaderOnly)
	require.Empty(t, n.containers())
}

// What is left when runner, engine and all were killed ends with the hold, which is clean only then.
func TestRealContainersLeaveNothing(t *testing.T) {
	onEach(t, func(t *testing.T, n *realNode) {
		n.answer(0, boxed(1, "trap '' HUP; echo up; while :; do sleep 1; done"))
		n.await(func() bool { return n.server.got(first, "") == "up\n" })
		n.keeper.Close()                                                     // as a daemon that was killed
		require.NoError(t, syscall.Kill(n.runnerOf(first), syscall.SIGKILL)) // the engine hands the HUP on
		n.begin()
		require.Equal(t, contract.JobLost, n.awaitEnd(first).Code)
		require.NotEmpty(t, n.containers())
		n.holds.End([]string{alc(1)})
		n.await(n.holds.AwaitsLook)
		n.holds.Look(contract.NodeLook{Source: "simulated"}, time.Now().Add(time.Second))
		require.Empty(t, n.holds.Cleaned()[0].Problem, n.holds.Cleaned()[0].Proof)
		require.Empty(t, n.containers())
		mounts, err := os.ReadFile("/proc/mounts")
		require.NoError(t, err)
		require.NotContains(t, string(mounts), "/overlay/")
	})
}
