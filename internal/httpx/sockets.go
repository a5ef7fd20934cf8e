package httpx

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// Socket is a TCP socket of this machine.
type Socket struct {
	Local   netip.AddrPort
	UID     uint32 // whose it is
	Listens bool
}

// The columns of /proc/net/tcp (proc_net_tcp(5)), and the state of a socket that listens.
const (
	localColumn = 1
	stateColumn = 3
	userColumn  = 7
	listens     = "0A"
)

// SocketsAt are those of a port that the kernel shows: on Linux all of this network, elsewhere none.
func SocketsAt(port uint16) []Socket {
	if all, err := askForSockets(port); err == nil {
		return all
	}
	return readSockets(port)
}

// readSockets reads the tables of the kernel, which are as long as the machine has connections.
func readSockets(port uint16) (all []Socket) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table) //nolint:gosec // one of two
		if err != nil {
			continue // the kernel has no such family
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) <= userColumn {
				continue
			}
			at, ok := parseSocket(f[localColumn])
			uid, err := strconv.ParseUint(f[userColumn], 10, 32)
			if ok && err == nil && at.Port() == port {
				all = append(all, Socket{Local: at, UID: uint32(uid), Listens: f[stateColumn] == listens})
			}
		}
	}
	return all
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
