package hold_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/launch/launchtest"
)

// alc is an allocation of this process alone: without rights of its own a keeper ends all processes on the machine that
// bear the allocation's name, those of another package's tests, too.
func alc(n int) string { return fmt.Sprintf("alc_%d_%d", os.Getpid(), n) }

var day = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

// keeperIn returns a keeper whose places are in a folder that others can pass.
func keeperIn(t *testing.T, dir string) *hold.Keeper { return keeperAt(t, dir, clock.NewManual(day)) }

func keeperAt(t *testing.T, dir string, now clock.Clock) *hold.Keeper {
	t.Helper()
	k, err := hold.NewKeeper(hold.Config{Dir: filepath.Join(dir, "holds"), Book: filepath.Join(dir, "book.json"),
		Clock: now, Log: slog.New(slog.DiscardHandler), Grace: 100 * time.Millisecond,
		Launcher: launchtest.Launcher()})
	require.NoError(t, err)
	return k
}

func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "forewarm-hold-test-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func gpus(processes, used int) contract.NodeLook {
	return contract.NodeLook{Source: "nvml", GPUs: []contract.LookGPU{{UUID: "GPU-1",
		GPUTelemetry: contract.GPUTelemetry{Processes: &processes, MemoryUsedMiB: &used}}}}
}

// begin runs a script in a place as its sessions do, and returns what it prints.
func begin(t *testing.T, p hold.Place, script string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env, cmd.Dir = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Home}, p.Environment...), p.Home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if p.OwnUser {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: p.UID, Gid: p.GID}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

func awaitChange(t *testing.T, k *hold.Keeper) {
	t.Helper()
	select {
	case <-k.Changed():
	case <-time.After(time.Minute):
		t.Fatal("nothing changed")
	}
}

// What a holder leaves behind is gone once the end of its hold is proved: processes that hide and ignore, files
// in its folder and in those of everybody, shared memory.
func TestNothingIsLeftOfAHold(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	dir := newDir(t)
	k := keeperIn(t, dir)
	require.Equal(t, hold.OwnUser, k.Isolation())
	k.Look(gpus(0, 400), day)
	p, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}, GPUIndices: []int{3}})
	require.NoError(t, err)
	other, err := k.Open(hold.Hold{AllocationID: alc(2), GPUUUIDs: []string{"GPU-2"}})
	require.NoError(t, err)
	require.NotEqual(t, p.UID, other.UID)
	require.Subset(t, p.Environment, []string{"CUDA_VISIBLE_DEVICES=GPU-1", "FOREWARM_GPU_INDICES=3"})

	hidden := begin(t, p, `umask 0; echo secret >left; mkdir -p /tmp/fw-$$/deep; echo x >/tmp/fw-$$/deep/file
mkfifo up; echo y >/dev/shm/fw-$$; ipcmk -M 4096 >/dev/null; ipcmk -Q >/dev/null; ipcmk -S 1 >/dev/null
env -i setsid sh -c 'trap "" TERM HUP; : >up; while :; do sleep 100; done' >/dev/null 2>&1 & echo $!; cat up`)
	stays := begin(t, other, "sleep 1000 >/dev/null 2>&1 & echo $!")
	require.Equal(t, []string{alc(1), alc(2)}, k.List())

	k.End([]string{alc(1)})
	k.End([]string{alc(1)}) // the server repeats itself
	awaitChange(t, k)
	require.True(t, k.AwaitsLook())
	require.Empty(t, k.Cleaned(), "its GPUs were not read back")
	k.Look(gpus(1, 400), day.Add(time.Second))
	k.Look(gpus(0, 500), day.Add(2*time.Second))
	require.Empty(t, k.Cleaned(), "100 MiB more than before")
	k.Look(gpus(0, 440), day.Add(3*time.Second))
	got := k.Cleaned()
	require.Len(t, got, 1)
	require.Empty(t, got[0].Problem)
	require.Regexp(t, `^[2-9] processes ended, \d+ files removed in .*; no process on 1 GPU, memory as before$`,
		got[0].Proof)

	require.False(t, alive(hidden))
	require.True(t, alive(stays), "another's work goes on")
	for _, gone := range []string{p.Home, "/tmp/fw-*", "/dev/shm/fw-*"} {
		found, err := filepath.Glob(gone)
		require.NoError(t, err)
		require.Empty(t, found)
	}
	for _, list := range []string{"shm", "msg", "sem"} {
		text, err := os.ReadFile("/proc/sysvipc/" + list)
		require.NoError(t, err)
		require.NotContains(t, string(text), strconv.FormatUint(uint64(p.UID), 10))
	}
	_, err = k.Open(hold.Hold{AllocationID: alc(1)})
	require.ErrorIs(t, err, hold.ErrEnded)

	k.End(nil)
	require.Empty(t, k.Cleaned(), "the server has its proof")
	k.EndAll()
	require.False(t, alive(stays))
}

// A hold whose GPUs are known by their numbers can open no other, where the kernel can keep it from them.
func TestAHoldOpensItsOwnGPUs(t *testing.T) {
	dir := newDir(t)
	k := keeperIn(t, dir)
	look := gpus(0, 1)
	minor := 3
	look.GPUs[0].Minor = &minor
	k.Look(look, day)
	if k.Isolation() != hold.OwnDevices {
		t.Skip("GPUs cannot be kept from processes here")
	}
	p, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}})
	require.NoError(t, err)
	require.Contains(t, p.Environment, "FOREWARM_ISOLATION=devices")
	unknown, err := k.Open(hold.Hold{AllocationID: alc(2), GPUUUIDs: []string{"GPU-of-no-number"}})
	require.NoError(t, err)
	require.Contains(t, unknown.Environment, "FOREWARM_ISOLATION=user", "nobody can tell which devices are its own")
	for n, want := range map[uint32]bool{3: true, 4: false} {
		device := filepath.Join(dir, "nvidia"+strconv.Itoa(int(n)))
		require.NoError(t, unix.Mknod(device, unix.S_IFCHR|0o666, int(unix.Mkdev(195, n))))
		require.NoError(t, os.Chmod(device, 0o666)) //nolint:gosec // as NVIDIA's driver makes them
		require.Equal(t, want, !strings.Contains(opens(t, p, device), "Operation not permitted"), "device %d", n)
		require.NotContains(t, opens(t, unknown, device), "Operation not permitted")
	}
	k = keeperIn(t, dir) // a daemon that begins again
	_, err = k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}})
	require.NoError(t, err)
	require.Contains(t, opens(t, p, filepath.Join(dir, "nvidia4")), "Operation not permitted")
	k.EndAll()
}

// opens tries to open a device as work of a hold does, and returns what the kernel says.
func opens(t *testing.T, p hold.Place, device string) string {
	t.Helper()
	group, err := os.Open(p.Cgroup)
	require.NoError(t, err)
	defer func() { _ = group.Close() }()
	cmd := exec.Command("/bin/sh", "-c", `: <"$1"`, "sh", device)
	cmd.Env = []string{"LANG=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd()),
		Credential: &syscall.Credential{Uid: p.UID, Gid: p.GID}}
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// A hold cannot fill the machine with processes, and one that keeps forking is ended.
func TestAForkBombIsBoundedAndEnded(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give holds users of their own")
	}
	k := keeperIn(t, newDir(t))
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	limit, err := strconv.Atoi(begin(t, p, "bash -c 'ulimit -u'"))
	require.NoError(t, err)
	require.LessOrEqual(t, limit, 65536)
	require.Contains(t, begin(t, p, `bash -c 'ulimit -u 40; trap "" TERM
spawn() { trap "" TERM; while :; do (spawn) >/dev/null 2>&1 & sleep 0.01; done; }
spawn >/dev/null 2>&1 & disown; sleep 0.5; echo up' 2>/dev/null`), "up")
	k.End([]string{alc(1)})
	awaitChange(t, k)
	k.Look(contract.NodeLook{Source: "simulated"}, day.Add(time.Second))
	require.Len(t, k.Cleaned(), 1)
	require.Empty(t, k.Cleaned()[0].Problem)
}

// Without rights of its own a daemon knows its holders' processes by their mark.
func TestMarkedProcessesAreEnded(t *testing.T) {
	dir := newDir(t)
	k := keeperIn(t, dir)
	k.ForgetRights()
	require.Equal(t, hold.EnvironmentOnly, k.Isolation())
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	require.False(t, p.OwnUser)
	mine := begin(t, p, "setsid sleep 1000 >/dev/null 2>&1 & echo $!")
	other := p
	other.Environment = []string{"FOREWARM_ALLOCATION=" + alc(1) + "2"}
	others := begin(t, other, "sleep 1000 >/dev/null 2>&1 & echo $!")
	k.EndAll()
	require.False(t, alive(mine))
	require.True(t, alive(others))
	pid, err := strconv.Atoi(others)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

func TestGPUsWorkWhereProcessesOfTheirHoldsRun(t *testing.T) {
	dir := newDir(t)
	k := keeperIn(t, dir)
	busy, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1", "GPU-3"},
		GPUIndices: []int{5}})
	require.NoError(t, err)
	_, err = k.Open(hold.Hold{AllocationID: alc(2), GPUUUIDs: []string{"GPU-2"}})
	require.NoError(t, err)
	require.Empty(t, k.Working())
	pid := begin(t, busy, "sleep 1000 >/dev/null 2>&1 & echo $!")
	if busy.Cgroup != "" { // where who starts its work puts it
		require.NoError(t, os.WriteFile(filepath.Join(busy.Cgroup, "cgroup.procs"), []byte(pid), 0))
	}
	require.Equal(t, map[string]int{"GPU-1": 5, "GPU-3": -1}, k.Working())
	k = keeperIn(t, dir) // a daemon that begins again
	require.Equal(t, map[string]int{"GPU-1": 5, "GPU-3": -1}, k.Working())
	k.EndAll()
	require.Empty(t, k.Working())
}

// A daemon that begins again goes on with what an earlier one held and was ending.
func TestTheBookOutlivesTheDaemon(t *testing.T) {
	dir := newDir(t)
	k := keeperIn(t, dir)
	p, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}})
	require.NoError(t, err)
	stays := begin(t, p, "sleep 1000 >/dev/null 2>&1 & echo $!")

	k = keeperIn(t, dir)
	require.Equal(t, []string{alc(1)}, k.List())
	again, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}})
	require.NoError(t, err)
	require.Equal(t, p, again)
	require.True(t, alive(stays))

	// The book says that the end has begun, as a daemon that was killed leaves it.
	book := filepath.Join(dir, "book.json")
	text, err := os.ReadFile(book)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(book, []byte(strings.Replace(string(text), `"open"`, `"ending"`, 1)), 0o600))
	require.NoError(t, os.WriteFile(book+".journal", []byte(`{"holds":{"alc_`), 0o600))
	k = keeperIn(t, dir)
	require.Empty(t, k.List())
	k.Resume()
	awaitChange(t, k)
	require.False(t, alive(stays))
	k.Look(gpus(0, 1), day.Add(time.Second))
	require.Len(t, k.Cleaned(), 1)
}

// A hold of which nothing is known is ended by what its folder says.
func TestAnUnknownHoldIsEnded(t *testing.T) {
	dir := newDir(t)
	k := keeperIn(t, dir)
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	stays := begin(t, p, "sleep 1000 >/dev/null 2>&1 & echo $!")
	for _, name := range []string{"book.json", "book.json.journal"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	k = keeperIn(t, dir)
	require.Empty(t, k.List())
	k.End([]string{alc(1), "../../etc"})
	awaitChange(t, k)
	require.False(t, alive(stays))
	k.Look(contract.NodeLook{Source: "none", Problem: "no driver"}, day.Add(time.Second))
	got := k.Cleaned()
	require.Len(t, got, 1)
	require.Contains(t, got[0].Proof, "it had nothing here")
}

// An end waits for what is being started, and ends it.
func TestAnEndWaitsForWhatIsBeingStarted(t *testing.T) {
	k := keeperIn(t, newDir(t))
	_, err := k.Begin(alc(1))
	require.ErrorIs(t, err, hold.ErrEnded, "it was never opened")
	p, err := k.Open(hold.Hold{AllocationID: alc(1)})
	require.NoError(t, err)
	began, err := k.Begin(alc(1))
	require.NoError(t, err)
	k.End([]string{alc(1)})
	_, err = k.Begin(alc(1))
	require.ErrorIs(t, err, hold.ErrEnded)
	late := begin(t, p, "setsid sleep 1000 >/dev/null 2>&1 & echo $!")
	select {
	case <-k.Changed():
		t.Fatal("it ended before")
	default:
	}
	began()
	awaitChange(t, k)
	require.False(t, alive(late))
}

// What is told of GPUs is no more than was read of them.
func TestAProofSaysWhatWasRead(t *testing.T) {
	unread, known := gpus(0, 1), gpus(0, 10)
	unread.GPUs[0].MemoryUsedMiB = nil
	for want, looks := range map[string][2]contract.NodeLook{
		"no process on 1 GPU, memory as before":                   {known, known},
		"nothing is seen on 1 GPU, of which not all can be read":  {unread, known},
		"nothing is seen on 1 GPU, of which not all can be read ": {known, unread},
		"this daemon sees 0 of its 1 GPUs":                        {unread, {Source: "nvml"}},
	} {
		k := keeperIn(t, newDir(t))
		k.Look(looks[0], day)
		_, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}})
		require.NoError(t, err)
		k.End([]string{alc(1)})
		awaitChange(t, k)
		k.Look(looks[1], day.Add(time.Second))
		require.Len(t, k.Cleaned(), 1, want)
		require.Empty(t, k.Cleaned()[0].Problem)
		require.Contains(t, k.Cleaned()[0].Proof, strings.TrimSpace(want))
	}
}

// GPUs that do not get free make the hold one that is not clean.
func TestGPUsThatStayBusyAreTold(t *testing.T) {
	lost := gpus(0, 1)
	lost.GPUs[0].Lost = true
	for want, look := range map[string]contract.NodeLook{
		"2 processes are on GPU GPU-1": gpus(2, 1), "999 MiB of GPU GPU-1 are in use, and 10 were before": gpus(0, 999),
		"GPU GPU-1, which was here when it began, is not seen any more": {Source: "nvml"},
		"GPU GPU-1 is lost": lost, "its GPUs cannot be read: it hangs": {Source: "none", Problem: "it hangs"},
	} {
		k := keeperIn(t, newDir(t))
		k.Look(gpus(0, 10), day)
		_, err := k.Open(hold.Hold{AllocationID: alc(1), GPUUUIDs: []string{"GPU-1"}})
		require.NoError(t, err)
		k.End([]string{alc(1)})
		awaitChange(t, k)
		k.Look(look, day.Add(time.Second))
		require.Empty(t, k.Cleaned(), want)
		k.Look(look, day.Add(2*time.Minute))
		got := k.Cleaned()
		require.Len(t, got, 1, want)
		require.Equal(t, want, got[0].Problem)
	}
}

func TestOpenRefusesWhatIsNoID(t *testing.T) {
	k := keeperIn(t, newDir(t))
	for _, id := range []string{"", ".", "..", "a/b", "../x", strings.Repeat("a", 65), "-a"} {
		_, err := k.Open(hold.Hold{AllocationID: id})
		require.Error(t, err, id)
	}
}

// alive reports whether a process has not ended.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
