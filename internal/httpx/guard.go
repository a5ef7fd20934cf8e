package httpx

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Guard decides to which addresses a client may connect whose URLs come from
// outside, such as those of webhooks. It looks at the address that is being
// dialled, not at the name: a name can resolve to another address a moment after
// it was checked.
type Guard struct {
	// AllowPrivate lets through what an operator may run at home: private,
	// loopback, shared (CGNAT) and unique local addresses. Addresses where clouds
	// serve instance credentials stay closed.
	AllowPrivate bool
}

// DeniedError is the error of a connection that a Guard refused.
type DeniedError struct {
	Addr netip.Addr
}

// Error names the address.
func (e *DeniedError) Error() string { return fmt.Sprintf("connecting to %v is not allowed", e.Addr) }

var (
	// metadata holds the addresses at which clouds hand credentials to whoever
	// asks: link-local ones, and those that AWS (IPv6), Alibaba Cloud, Azure and
	// Oracle Cloud chose outside of that range.
	metadata = parsePrefixes("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128",
		"100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")
	// private holds what only AllowPrivate opens.
	private = parsePrefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "100.64.0.0/10", "::1/128",
		"fc00::/7")
	// special holds what is no host on the internet (RFC 6890 and its updates),
	// or hides an IPv4 address in an IPv6 one (NAT64, 6to4, Teredo).
	special = parsePrefixes("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24",
		"224.0.0.0/4", "240.0.0.0/4", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32",
		"2001:db8::/32",
		"2002::/16", "fec0::/10", "ff00::/8")
)

func parsePrefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Allow returns nil if a connection to addr is allowed, or a *DeniedError. An
// IPv4 address mapped into IPv6 counts as what it maps.
func (g Guard) Allow(addr netip.Addr) error {
	bare := addr.Unmap().WithZone("")
	open := g.AllowPrivate && isWithin(bare, private)
	if !bare.IsValid() || isWithin(bare, metadata) || !open && (isWithin(bare, private) || isWithin(bare, special)) {
		return &DeniedError{Addr: addr}
	}
	return nil
}

// Control is for net.Dialer.Control.
func (g Guard) Control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("checking the address to dial: %w", err)
	}
	return g.Allow(to.Addr())
}

// Transport returns a transport that connects only where the guard allows, and
// uses no proxy, which would do the connecting unseen.
func (g Guard) Transport() *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: g.Control}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 5 * time.Second,
		IdleConnTimeout:     IdleTimeout,
		MaxIdleConns:        32,
	}
}

func isWithin(addr netip.Addr, all []netip.Prefix) bool {
	for _, p := range all {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
