package httpx

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
)

// The users of holders of GPUs on a machine, as its daemon hands them out (node/hold).
const (
	FirstHolder = 1_900_000_000
	LastHolder  = 1_999_999_999
)

// HeldPortError says that what answers at an address of this machine is a program of a holder of
// GPUs, and not the control plane: ports are anybody's once it has ended.
type HeldPortError struct{ Address string }

// Error names the address.
func (e *HeldPortError) Error() string {
	return fmt.Sprintf("what listens at %s is a program of somebody who holds GPUs here, not the control plane: "+
		"nothing was sent to it", e.Address)
}

// NewGuardedTransport is net/http's default transport, but for what it sends to a program of a
// holder of GPUs on this machine: nothing, with a *HeldPortError.
func NewGuardedTransport() http.RoundTripper {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // a test's
	}
	guarded := base.Clone()
	guarded.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := base.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := checkPeer(conn.RemoteAddr()); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
	return guarded
}

// checkPeer refuses a peer on this machine that is a holder's: by its end of the connection, or, while
// that is nobody's yet, by who listens there.
func checkPeer(peer net.Addr) error {
	at, err := netip.ParseAddrPort(peer.String())
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return nil
	}
	if _, held := HolderAt(at); held {
		return &HeldPortError{Address: at.String()}
	}
	return nil
}

// HolderAt is the user of the holder of GPUs on this machine who has an address of it, if one has.
func HolderAt(at netip.AddrPort) (user uint32, held bool) {
	for _, s := range Sockets() {
		ip := s.Local.Addr()
		here := s.Local.Port() == at.Port() && (ip == at.Addr().Unmap() || ip.IsUnspecified())
		if here && s.UID >= FirstHolder && s.UID <= LastHolder {
			return s.UID, true
		}
	}
	return 0, false
}
