package work

import (
	"net/netip"

	"github.com/forewarm/forewarm/internal/httpx"
)

// loopbackListener is the address at which a program of a user can be reached on a port of
// the loopback interface.
func loopbackListener(uid uint32, port int) (netip.Addr, bool) {
	for _, s := range httpx.SocketsAt(uint16(port)) { //nolint:gosec // a port
		if !s.Listens || s.UID != uid {
			continue
		}
		switch ip := s.Local.Addr(); {
		case ip.IsLoopback():
			return ip, true
		case ip == netip.IPv4Unspecified():
			return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
		case ip == netip.IPv6Unspecified():
			return netip.IPv6Loopback(), true
		}
	}
	return netip.Addr{}, false
}
