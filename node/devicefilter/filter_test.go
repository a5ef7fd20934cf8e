package devicefilter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/node/devicefilter"
)

// cgroupFor makes a cgroup of the test, where one can be made and devices can be.
func cgroupFor(t *testing.T) string {
	t.Helper()
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		dir := filepath.Join(mount, "forewarm-filter-test-"+strconv.Itoa(os.Getpid()))
		if os.Getuid() != 0 || os.Mkdir(dir, 0o700) != nil {
			continue
		}
		t.Cleanup(func() { require.NoError(t, syscall.Rmdir(dir)) })
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return dir
		}
	}
	t.Skip("no cgroup of version 2 can be made here")
	return ""
}

// opens tries to open a device in a cgroup, and returns what the kernel says.
func opens(t *testing.T, cgroup, device string) string {
	t.Helper()
	dir, err := os.Open(cgroup)
	require.NoError(t, err)
	defer func() { _ = dir.Close() }()
	cmd := exec.Command("/bin/sh", "-c", `: <"$1"`, "sh", device)
	cmd.Env = []string{"LANG=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	out, _ := cmd.CombinedOutput()
	return string(out)
}

func TestOnlyTheirOwnGPUsAreOpened(t *testing.T) {
	cgroup := cgroupFor(t)
	devices := map[int]string{}
	for _, minor := range []int{0, 1, 7, 254, 255} {
		devices[minor] = filepath.Join(t.TempDir(), "nvidia"+strconv.Itoa(minor))
		if err := unix.Mknod(devices[minor], unix.S_IFCHR|0o666, int(unix.Mkdev(195, uint32(minor)))); err != nil {
			t.Skip("no devices can be made here: ", err)
		}
	}
	before := map[int]string{}
	for minor, device := range devices {
		before[minor] = opens(t, cgroup, device) // without a driver: no such device
		require.NotContains(t, before[minor], "not permitted")
	}
	if err := devicefilter.Attach(cgroup, devicefilter.Devices{GPUs: []int{1, 7}}); err != nil {
		require.ErrorIs(t, err, unix.EPERM)
		t.Skip("no filter can be attached here: ", err)
	}
	for minor, device := range devices {
		if minor == 0 {
			require.Contains(t, opens(t, cgroup, device), "Operation not permitted")
		} else {
			require.Equal(t, before[minor], opens(t, cgroup, device), "minor %d", minor)
		}
	}
	require.NoError(t, devicefilter.Attach(cgroup, devicefilter.Devices{GPUs: []int{0, 1, 7}}), "the first one stays")
	require.Contains(t, opens(t, cgroup, devices[0]), "Operation not permitted")
	require.Empty(t, opens(t, cgroup, "/dev/null"), "others are let through")
	require.Error(t, devicefilter.Attach(cgroup, devicefilter.Devices{GPUs: []int{300}}))
}

func TestWhatTheProgramAllows(t *testing.T) {
	t.Parallel()
	const nvidia, caps, null = 195, 237, 1
	whole := devicefilter.Devices{GPUs: []int{1, 7}}
	divided := devicefilter.Devices{GPUs: []int{1}, Capabilities: []int{12, 13, 40}, CapabilityMajor: caps}
	for _, c := range []struct {
		devices      devicefilter.Devices
		major, minor int32
		want         bool
	}{
		{whole, nvidia, 1, true}, {whole, nvidia, 7, true}, {whole, nvidia, 0, false}, {whole, nvidia, 8, false},
		{whole, nvidia, 254, true}, {whole, nvidia, 255, true}, {whole, null, 3, true}, {whole, caps, 12, true},
		{devicefilter.Devices{}, nvidia, 0, false}, {devicefilter.Devices{}, nvidia, 255, true},
		{divided, nvidia, 1, true}, {divided, nvidia, 0, false}, {divided, nvidia, 255, true},
		{divided, caps, 12, true}, {divided, caps, 13, true}, {divided, caps, 40, true}, {divided, caps, 14, false},
		{divided, caps, 1, false}, {divided, caps, 254, false}, {divided, null, 1, true},
	} {
		require.Equal(t, c.want, c.devices.Allows(c.major, c.minor), "%+v %d:%d", c.devices, c.major, c.minor)
	}
	require.Positive(t, devicefilter.MajorOf("mem"))
	require.Zero(t, devicefilter.MajorOf("no driver"))
}

func TestDevicesThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for _, d := range []devicefilter.Devices{{GPUs: []int{-1}}, {GPUs: []int{254}}, {Capabilities: []int{3}},
		{Capabilities: []int{-3}, CapabilityMajor: 237}, {Capabilities: make([]int, 129), CapabilityMajor: 237}} {
		require.ErrorContains(t, devicefilter.Attach(t.TempDir(), d), "no minor numbers")
	}
}
