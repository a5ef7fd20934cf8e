package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net"
	neturl "net/url"

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
		return nil, nil
	}
	l, err := openListener(ctx, a.cfg.peersListen(), "server.peers_listen (FOREWARM_SERVER_PEERS_LISTEN)")
	if err != nil {
		return nil, err
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
	defer conn.Close()
	host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	return host
}

// checkPeers checks where other servers are listened to. What they say is encrypted, so
// any address may be opened to them.
func (c Config) checkPeers() error {
	if at := c.Server.PeersListen; at != "" && at != peersOff {
		if _, _, err := net.SplitHostPort(at); err != nil {
			return c.valueError("server.peers_listen", fmt.Sprintf("%q is not host:port", at),
				"write an address such as 10.0.0.5:8788, or off")
		}
	}
	return nil
}
