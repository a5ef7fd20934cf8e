package peers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/forewarm/forewarm/ledger"
)

// sessionProtocol names connections that carry one session on a node each.
const sessionProtocol = "forewarm-sessions/"

// maxSessions are those that other servers carry to this one.
const maxSessions = 4096

// OnSession has serve serve the connections on which other servers carry sessions. It is
// called before Run; serve closes nothing.
func (g *Group) OnSession(serve func(context.Context, net.Conn)) { g.serveSession = serve }

// Others are the servers that were there at the last look, but for this one.
func (g *Group) Others() []ledger.Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []ledger.Peer
	for _, p := range g.all {
		if p.ID != g.cfg.ID {
			out = append(out, p)
		}
	}
	return out
}

// DialSession connects to another server for one session. Both sides have proved who they
// are. The caller closes the connection.
func (g *Group) DialSession(ctx context.Context, to ledger.Peer) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	security := g.security.Clone()
	security.NextProtos = []string{sessionProtocol + g.cfg.Version}
	dialer := tls.Dialer{Config: security}
	conn, err := dialer.DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, fmt.Errorf("connecting to another server at %s: %w", to.Address, err)
	}
	return conn, nil
}

// carriesSession reports whether a connection is for one session.
func (g *Group) carriesSession(conn *tls.Conn) bool {
	return g.serveSession != nil && conn.ConnectionState().NegotiatedProtocol == sessionProtocol+g.cfg.Version
}
