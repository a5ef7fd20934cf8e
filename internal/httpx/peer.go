package httpx

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
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
		if at, held := HolderBehind(conn); held {
			_ = conn.Close()
			return nil, &HeldPortError{Address: at}
		}
		return conn, nil
	}
	return guarded
}

// HolderBehind reports whether the peer of a connection is a program of a holder of GPUs on this machine, and at which
// address: by its end of the connection, or, while that is nobody's yet, by who listens there. The machine's own
// addresses are those of the loopback interface, and the one from which it speaks to itself.
func HolderBehind(conn net.Conn) (address string, held bool) {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return "", false
	}
	own, err := netip.ParseAddrPort(conn.LocalAddr().String())
	ip := at.Addr().Unmap()
	if !ip.IsLoopback() && (err != nil || ip != own.Addr().Unmap()) {
		return "", false
	}
	_, held = HolderAt(at)
	return at.String(), held
}

// HolderAt is the user of the holder of GPUs on this machine who has an address of it, if one has.
func HolderAt(at netip.AddrPort) (user uint32, held bool) {
	for _, s := range SocketsAt(at.Port()) {
		ip := s.Local.Addr()
		here := ip == at.Addr().Unmap().WithZone("") || ip.IsUnspecified()
		if here && s.UID >= FirstHolder && s.UID <= LastHolder {
			return s.UID, true
		}
	}
	return 0, false
}

// metadata is where clouds tell their machines of themselves, credentials among it: EC2, Compute Engine, Azure, OCI and
// others; those three by IPv6; Azure's agent; Alibaba Cloud; and what gives containers of AWS their credentials.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"),
	netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("169.254.170.2"),
	netip.MustParseAddr("169.254.170.23"),
	netip.MustParseAddr("fd00:ec2::23"),
}

// besideMetadata is what AWS keeps for itself around such addresses.
var besideMetadata = []netip.Prefix{netip.MustParsePrefix("169.254.170.0/24"), netip.MustParsePrefix("fd00:ec2::/32")}

// MetadataAddresses are those at which clouds tell their machines of themselves. The caller owns them.
func MetadataAddresses() []netip.Addr { return slices.Clone(metadata) }

// IsCloudMetadata reports whether a cloud answers at an address with what is meant for the machine alone, credentials
// among it.
func IsCloudMetadata(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.Contains(metadata, ip) ||
		slices.ContainsFunc(besideMetadata, func(p netip.Prefix) bool { return p.Contains(ip) })
}
