package addressfilter_test

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/forewarm/forewarm/node/addressfilter"
)

// TestMain is the child, too, that connects.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "connect" {
		_, _ = os.Stdout.WriteString(connect(os.Args[2], os.Args[3]))
		return
	}
	os.Exit(m.Run())
}

// connect begins a connection without waiting for it, and returns what the kernel says.
func connect(network, address string) string {
	protocols := map[string]int{"udp": unix.IPPROTO_UDP, "sent": unix.IPPROTO_UDP, "mptcp": unix.IPPROTO_MPTCP}
	kind := unix.SOCK_STREAM
	if network == "udp" || network == "sent" {
		kind = unix.SOCK_DGRAM
	}
	to, family, err := socketAddress(address)
	if err != nil {
		return err.Error()
	}
	socket, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK, protocols[network])
	if err != nil {
		return "no socket: " + err.Error()
	}
	begin := unix.Connect
	if network == "sent" {
		begin = func(socket int, to unix.Sockaddr) error { return unix.Sendto(socket, []byte("x"), 0, to) }
	}
	if err := begin(socket, to); err != nil {
		return err.Error()
	}
	return ""
}

// socketAddress is an address as the kernel takes it, and its family.
func socketAddress(address string) (unix.Sockaddr, int, error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, 0, err
	}
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, unix.AF_INET, nil
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}, unix.AF_INET6, nil
}

// cgroupFor makes a cgroup of the test, where one can be made.
func cgroupFor(t *testing.T) string {
	t.Helper()
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		dir := filepath.Join(mount, "forewarm-address-test-"+strconv.Itoa(os.Getpid()))
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

// connects connects as a process of a cgroup.
func connects(t *testing.T, cgroup, network, address string) string {
	t.Helper()
	dir, err := os.Open(cgroup)
	require.NoError(t, err)
	defer func() { _ = dir.Close() }()
	cmd := exec.Command(os.Args[0], "connect", network, address)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

const refused = "operation not permitted"

// reached are addresses, and whether work is kept from them.
var reached = map[string]bool{
	"169.254.169.254:80": true, "168.63.129.16:80": true, "100.100.100.200:80": true, "169.254.169.254:443": true,
	"[::ffff:169.254.169.254]:80": true, "169.254.170.2:80": true, "[fd00:ec2::23]:80": true,
	"[fd00:ec2::254]:80": true, "[fd20:ce::254]:80": true, "[fd00:c1::a9fe:a9fe]:80": true,
	"169.254.169.254:53": false, "[fd00:ec2::254]:53": false, "169.254.169.253:80": false, "10.0.0.1:80": false,
	"127.0.0.1:80": false, "[::1]:80": false, "[fd00:ec2::253]:80": false, "[fd00:ec3::254]:80": false,
	"[::ffff:127.0.0.1]:80": false,
}

// What the programs say wherever the kernel runs none.
func TestWhatTheProgramsAllow(t *testing.T) {
	t.Parallel()
	for address, blocked := range reached {
		to := netip.MustParseAddrPort(address)
		require.Equal(t, !blocked, addressfilter.Allows(to, true), "%s by IPv6", address)
		if to.Addr().Is4() {
			require.Equal(t, !blocked, addressfilter.Allows(to, false), address)
		}
	}
}

// The work of a holder reaches the metadata of a cloud's machine by no kind of socket, and all else.
func TestMetadataIsNotReached(t *testing.T) {
	cgroup := cgroupFor(t)
	networks := []string{"tcp", "udp", "sent", "mptcp"}
	before := map[string]string{}
	for address := range reached {
		for _, network := range networks {
			before[network+address] = connects(t, cgroup, network, address)
			require.NotEqual(t, refused, before[network+address])
		}
	}
	filter, err := addressfilter.Load()
	if err == nil {
		defer func() { require.NoError(t, filter.Close()) }()
		err = filter.Attach(cgroup)
	}
	if err != nil {
		require.ErrorIs(t, err, unix.EPERM)
		t.Skip("no filter can be attached here: ", err)
	}
	for address, blocked := range reached {
		for _, network := range networks {
			want := before[network+address]
			if blocked && !strings.HasPrefix(want, "no socket") {
				want = refused
			}
			require.Equal(t, want, connects(t, cgroup, network, address), "%s %s", network, address)
		}
	}
	require.NoError(t, filter.Attach(cgroup), "the first one stays")
}
