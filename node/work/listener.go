package work

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// The columns of /proc/net/tcp (proc_net_tcp(5)), and the state of a socket that listens.
const (
	localColumn = 1
	stateColumn = 3
	userColumn  = 7
	listens     = "0A"
)

// loopbackListener is the address at which a program of a user can be reached on a port of
// the loopback interface.
func loopbackListener(uid uint32, port int) (netip.Addr, bool) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table) //nolint:gosec // one of two
		if err != nil {
			continue // the kernel has no such family
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) <= userColumn || f[stateColumn] != listens || f[userColumn] != strconv.FormatUint(uint64(uid), 10) {
				continue
			}
			at, ok := parseSocket(f[localColumn])
			if !ok || int(at.Port()) != port {
				continue
			}
			switch ip := at.Addr(); {
			case ip.IsLoopback():
				return ip, true
			case ip == netip.IPv4Unspecified():
				return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
			case ip == netip.IPv6Unspecified():
				return netip.IPv6Loopback(), true
			}
		}
	}
	return netip.Addr{}, false
}

// parseSocket reads an address as the kernel prints it: words of 32 bits in the machine's
// order, and a port, all in hexadecimal digits.
func parseSocket(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), ok && err == nil
}
