package hold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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
		p, err := k.Open(hold.Hold{AllocationID: "alc_1"})
		require.NoError(t, err)
		pid := begin(t, p, program+" >/dev/null 2>&1 & echo $!")
		require.Eventually(t, func() bool { return !alive(pid) && hasThreads(pid) }, 10*time.Second, 10*time.Millisecond)
		k.End([]string{"alc_1"})
		awaitChange(t, k)
		require.Eventually(t, func() bool { return !hasThreads(pid) }, time.Second, time.Millisecond)
		k.Look(contract.NodeLook{Source: "simulated"}, day.Add(time.Second))
		require.Len(t, k.Cleaned(), 1)
		require.Empty(t, k.Cleaned()[0].Problem)
		require.Contains(t, k.Cleaned()[0].Proof, "1 process ended")
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
		p, err := k.Open(hold.Hold{AllocationID: "alc_1"})
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
		k.End([]string{"alc_1"})
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

// Folders that lie in each other, deeper than a path or open files go, are removed; links lead nowhere.
func TestADeepFolderIsRemoved(t *testing.T) {
	dir := newDir(t)
	k := keeperIn(t, dir)
	p, err := k.Open(hold.Hold{AllocationID: "alc_1"})
	require.NoError(t, err)
	kept := filepath.Join(dir, "kept")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	shared, err := os.MkdirTemp("/tmp", "forewarm-deep-")
	require.NoError(t, err)
	for _, top := range []string{p.Home, shared} {
		at, err := unix.Open(top, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		for range 2_000 {
			require.NoError(t, unix.Mkdirat(at, "d", 0o700))
			require.NoError(t, unix.Symlinkat(dir, at, "link"))
			below, err := unix.Openat(at, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			require.NoError(t, err)
			require.NoError(t, unix.Close(at))
			at = below
		}
		require.NoError(t, unix.Close(at))
	}
	require.NoError(t, os.Chown(shared, int(p.UID), int(p.GID)))
	k.End([]string{"alc_1"})
	awaitChange(t, k)
	k.Look(contract.NodeLook{Source: "simulated"}, day.Add(time.Second))
	require.Len(t, k.Cleaned(), 1)
	require.Empty(t, k.Cleaned()[0].Problem)
	require.NoDirExists(t, p.Home)
	require.FileExists(t, kept)
	if p.OwnUser {
		require.NoDirExists(t, shared)
	}
	require.NoError(t, exec.Command("rm", "-rf", shared).Run())
}

// What could not be removed is tried again, and is not forgotten before it is gone.
func TestWhatIsNotCleanIsTriedAgain(t *testing.T) {
	dir := newDir(t)
	now := clock.NewManual(day)
	k := keeperAt(t, dir, now)
	_, err := k.Open(hold.Hold{AllocationID: "alc_1"})
	require.NoError(t, err)
	blocked := filepath.Join(dir, "holds", ".removing-alc_1") // no folder can be made there
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	k.End([]string{"alc_1"})
	awaitChange(t, k)
	require.Contains(t, k.Cleaned()[0].Problem, "removing the folder of the hold")
	k.End(nil) // the server has heard it
	require.Len(t, k.Cleaned(), 1, "it is still there")
	require.NoError(t, os.Remove(blocked))
	now.Advance(time.Minute)
	k.End(nil)
	awaitChange(t, k)
	k.Look(contract.NodeLook{Source: "simulated"}, now.Now().Add(time.Second))
	require.Empty(t, k.Cleaned()[0].Problem)
	k.End(nil)
	require.Empty(t, k.Cleaned())
}
