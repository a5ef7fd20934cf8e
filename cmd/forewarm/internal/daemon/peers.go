package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	neturl "net/url"
	"regexp"
	"strconv"
	"syscall"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/server"
	"github.com/forewarm/forewarm/server/peers"
)

// peersOff is the value of server.peers_listen of a server that stays alone.
const peersOff = "off"

// joinPeers has a server's configuration name the others, unless it is to stay
// alone.
func (a *app) joinPeers(ctx context.Context) (func(*server.Config), error) {
	if a.cfg.Server.PeersListen == peersOff {
		a.log.InfoContext(ctx, "server.peers_listen is off: this server decides what it is asked, beside any others")
		a.metrics.Leads(true)
		return nil, nil
	}
	l, err := openListener(ctx, a.cfg.peersListen(), "server.peers_listen (FOREWARM_SERVER_PEERS_LISTEN)")
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, err
	}
	if err != nil {
		return nil, a.cfg.valueError("server.peers_listen", fmt.Sprintf("%s cannot be opened: %v", a.cfg.peersListen(), err),
			"name an address of this machine and a free port, such as 10.0.0.5:8788 (FOREWARM_SERVER_PEERS_LISTEN)")
	}
	address := a.cfg.peersAddress(ctx, l.Addr().String())
	a.log.InfoContext(ctx, "other servers reach this one", "address", address)
	return func(c *server.Config) {
		c.Peers = &peers.Config{Peers: a.store, ID: ids.UUID{}.New(ids.Server), Listener: l, Address: address}
	}, nil
}

// peersListen is where other servers are listened to: as told, or on a free port
// where the API listens.
func (c Config) peersListen() string {
	host, _, _ := net.SplitHostPort(c.Listen) // was checked
	return cmp.Or(c.Server.PeersListen, net.JoinHostPort(host, "0"))
}

// peersAddress is where other servers reach the listener: as told, or at its
// address. If it listens at all addresses, it is the one from which the
// database is reached, since that is where the other servers are, too.
func (c Config) peersAddress(ctx context.Context, listener string) string {
	host, port, _ := net.SplitHostPort(listener)
	if c.Server.PeersAddress != "" {
		if _, set, err := net.SplitHostPort(c.Server.PeersAddress); err == nil && set != "0" {
			return c.Server.PeersAddress
		}
		return net.JoinHostPort(c.Server.PeersAddress, port)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = c.addressTowardsDatabase(ctx)
	}
	return net.JoinHostPort(host, port)
}

// addressTowardsDatabase is this machine's address on the way to the database. No packet
// is sent to find it. A database on this machine has others on this machine, too.
func (c Config) addressTowardsDatabase(ctx context.Context) string {
	const loopback = "127.0.0.1"
	url, err := neturl.Parse(c.databaseURL())
	if err != nil || url.Hostname() == "" {
		return loopback
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", net.JoinHostPort(url.Hostname(), cmp.Or(url.Port(), "5432")))
	if err != nil {
		return loopback
	}
	defer func() { _ = conn.Close() }()
	host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	return host
}

// checkPeers checks where other servers are listened to, and where they are told to come.
// What servers say to each other is encrypted, so any address may be opened to them.
func (c Config) checkPeers() error {
	if at := c.Server.PeersListen; at != "" && at != peersOff {
		if _, port, err := net.SplitHostPort(at); err != nil || !isPort(port) {
			return c.valueError("server.peers_listen", fmt.Sprintf("%q is not host:port", at),
				"write an address such as 10.0.0.5:8788, or off")
		}
	}
	host, port := c.Server.PeersAddress, "1"
	if h, p, err := net.SplitHostPort(host); err == nil {
		host, port = h, p
	}
	if c.Server.PeersAddress != "" && (!isHost(host) || !isPort(port)) {
		return c.valueError("server.peers_address", fmt.Sprintf("%q is no host and no host:port", c.Server.PeersAddress),
			"write a name or an address, such as forewarm-1.internal or 10.0.0.5:8788")
	}
	return nil
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// isHost reports whether a text may be a name or an address.
func isHost(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	return hostName.MatchString(text)
}

var hostName = regexp.MustCompile(`^[0-9A-Za-z_]([0-9A-Za-z_.-]{0,251}[0-9A-Za-z_])?$`)
