package hold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch"
	"github.com/forewarm/forewarm/node/launch/launchtest"
)

// A process whose first thread has ended looks like one that only waits to be read, and is ended like any other.
func TestAProcessWithoutItsFirstThreadIsEnded(t *testing.T) {
	dir := newDir(t)
	program := filepath.Join(dir, "leaderless")
	build := exec.Command("go", "build", "-o", program, "./testdata/leaderless")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, forget := range []bool{false, true} {
		k := keeperIn(t, filepath.Join(dir, strconv.FormatBool(forget)))
		if forget {
			k.ForgetRights()
		}
		p, err := k.Open(hold.Hold{AllocationID: alc(1)})
		require.NoError(t, err)
		pid := begin(t, p, program+" >/dev/null 2>&1 & echo $!")
		require.Eventually(t, func() bool { return !alive(pid) && hasThreads(pid) }, time.Minute, 10*time.Millisecond)
		k.End([]string{alc(1)})
		awaitChange(t, k)
		require.Eventually(t, func() bool { return !hasThreads(pid) }, time.Minute, time.Millisecond)
		k.Look(contract.NodeLook{Source: "simulated"}, day.Add(time.Second))
		require.Len(t, k.Cleaned(), 1)
		require.Empty(t, k.Cleaned()[0].Problem)
		require.Regexp(t, "^(1 process|2 processes) ended", k.Cleaned()[0].Proof, "the shell may be about to end, too")
	}
}

// A command that the kernel has not begun yet, as it waits with its program, ends with its hold all the same.
func TestACommandThatHasNotBegunEndsWithItsHold(t *testing.T) {
	dir := newDir(t)
	program, waits := launchtest.NewLeased(t, dir)
	for _, forget := range []bool{false, true} {
		k := keeperIn(t, filepath.Join(dir, strconv.FormatBool(forget)))
		if forget {
			k.ForgetRights()
		}
		p, err := k.Open(hold.Hold{AllocationID: alc(1)})
		require.NoError(t, err)
		what := launch.Command{Arguments: []string{program}, Directory: "/", Cgroup: p.Cgroup, Mark: p.Mark}
		if p.OwnUser {
			what.User = &launch.User{UID: p.UID, GID: p.GID}
		}
		child, err := p.Launcher.Start(what)
		require.NoError(t, err)
		if !forget { // the lease is being broken by then
			<-waits
		}
		k.End([]string{alc(1)})
		awaitChange(t, k)
		<-child.Exited()
		require.Empty(t, child.Close())
		require.True(t, child.Status().Signaled())
	}
}

// hasThreads reports whether a thread of a process, its first apart, runs.
func hasThreads(pid string) bool {
	threads, err := os.ReadDir("/proc/" + pid + "/task") // that of a zombie alone is its first
	return err == nil && len(threads) > 1
}

// What could not be removed is tried again, and is not forgotten before it is gone.
func TestWhatIsNotCleanIsTriedAgain(t *testing.T) {
	dir := newDir(t)
	now := clock.NewManual(day)
	k := keeperAt(t, dir, now)
	_, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	holds, away := filepath.Join(dir, "holds"), filepath.Join(dir, "away")
	require.NoError(t, os.Rename(holds, away))
	require.NoError(t, os.WriteFile(holds, nil, 0o600)) // no folder can be opened there
	k.End([]string{alc(1)})
	awaitChange(t, k)
	require.Contains(t, k.Cleaned()[0].Problem, "removing the folder of the hold")
	k.End(nil) // the server has heard it
	require.Len(t, k.Cleaned(), 1, "it is still there")
	require.NoError(t, os.Remove(holds))
	require.NoError(t, os.Rename(away, holds))
	now.Advance(time.Minute)
	k.End(nil)
	awaitChange(t, k)
	k.Look(contract.NodeLook{Source: "simulated"}, now.Now().Add(time.Second))
	require.Empty(t, k.Cleaned()[0].Problem)
	k.End(nil)
	require.Empty(t, k.Cleaned())
}

// Processes that leave their parents as soon as they are there, and ignore TERM, come and go between two looks, and are
// ended like any others.
func TestProcessesThatComeAndGoAreEnded(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	k := keeperIn(t, newDir(t))
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	cmd := exec.Command("/bin/sh", "-c", `trap "" TERM; flee() { (flee &) }; flee; flee; flee`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.UID, Gid: p.GID}}
	if p.Cgroup != "" {
		group, err := os.Open(p.Cgroup)
		require.NoError(t, err)
		defer func() { _ = group.Close() }()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
	}
	require.NoError(t, cmd.Run(), "it goes on without its first process")
	proofOf(t, k, alc(1))
	require.NoDirExists(t, p.Cgroup)
}
