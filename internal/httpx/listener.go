package httpx

import (
	"container/list"
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// ConnLimits bound how many connections are open at once. Zero means no bound.
type ConnLimits struct {
	All        int
	PerAddress int // of one IPv4 address or IPv6 /64; proxies are exempt
}

// tooMany is the answer to a connection beyond the bounds.
const tooMany = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 5\r\n" +
	"Connection: close\r\nContent-Length: 41\r\n\r\nToo many connections are open. Try later\n"

// LimitConnections returns l with bounds. Beyond them a new connection takes the
// place of the oldest one on which nobody has proved who they are, so that who
// only holds connections keeps nobody out; where all have, it is answered with
// 503 and closed.
func LimitConnections(l net.Listener, limits ConnLimits, proxies Proxies) net.Listener {
	return &limitedListener{Listener: l, limits: limits, proxies: proxies, strangers: list.New(), networks: map[netip.Prefix]*network{}}
}

type limitedListener struct {
	net.Listener
	limits  ConnLimits
	proxies Proxies

	mu        sync.Mutex
	all       int
	strangers *list.List // of *countedConn on which nobody is proved, the oldest first
	networks  map[netip.Prefix]*network
}

// network is what is open from one; that of the zero Prefix is the proxies'.
type network struct {
	open      int
	strangers *list.List
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		counted := &countedConn{Conn: conn, listener: l, from: l.origin(conn)}
		oldest, ok := l.enter(counted)
		if oldest != nil {
			_ = oldest.Conn.Close()
		}
		if ok {
			return counted, nil
		}
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) //nolint:forbidigo // a socket's deadline is the machine's
		_, _ = io.WriteString(conn, tooMany)
		_ = conn.Close()
	}
}

// origin is what the connection counts for; the zero Prefix for a proxy's.
func (l *limitedListener) origin(conn net.Conn) netip.Prefix {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || l.proxies.Trust(at.Addr()) {
		return netip.Prefix{}
	}
	return Network(at.Addr().Unmap().WithZone(""))
}

// enter counts a connection, if there is a place, and returns the one whose place
// it took, which is to be closed.
func (l *limitedListener) enter(c *countedConn) (oldest *countedConn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.networks[c.from]
	var full *list.List
	switch {
	case l.limits.PerAddress > 0 && c.from.IsValid() && n != nil && n.open >= l.limits.PerAddress:
		full = n.strangers
	case l.limits.All > 0 && l.all >= l.limits.All:
		full = l.strangers
	}
	if full != nil {
		front := full.Front()
		if front == nil {
			return nil, false
		}
		oldest, _ = front.Value.(*countedConn)
		l.remove(oldest)
	}
	if n = l.networks[c.from]; n == nil {
		n = &network{strangers: list.New()}
		l.networks[c.from] = n
	}
	l.all++
	n.open++
	if c.from.IsValid() { // through a proxy come people of whom it knows nothing
		c.inAll, c.inOwn = l.strangers.PushBack(c), n.strangers.PushBack(c)
	}
	return oldest, true
}

// remove counts a connection no longer. Repeated, it changes nothing.
func (l *limitedListener) remove(c *countedConn) {
	if c.left {
		return
	}
	c.left = true
	l.prove(c)
	l.all--
	n := l.networks[c.from]
	if n.open--; n.open == 0 {
		delete(l.networks, c.from)
	}
}

func (l *limitedListener) prove(c *countedConn) {
	if c.inAll == nil {
		return
	}
	l.strangers.Remove(c.inAll)
	l.networks[c.from].strangers.Remove(c.inOwn)
	c.inAll, c.inOwn = nil, nil
}

type countedConn struct {
	net.Conn
	listener *limitedListener
	from     netip.Prefix

	// guarded by the listener's lock
	left         bool
	inAll, inOwn *list.Element // nil once somebody is proved
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

type connKey struct{}

// withConn lets a request's context find its connection.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// Proved notes that the sender of the request with this context has proved who it
// is: its connection is not closed to make room for others.
func Proved(ctx context.Context) {
	c, ok := ctx.Value(connKey{}).(*countedConn)
	if !ok {
		return // not one of a bounded listener
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if !c.left {
		c.listener.prove(c)
	}
}
