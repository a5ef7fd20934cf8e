package httpx

import (
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
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
// place of the oldest one on which nobody has proved who they are, or else of the
// one that has been idle longest, so that who only holds connections keeps nobody
// out; where on all of them a request of somebody proved is open, it is answered
// with 503 and closed.
func LimitConnections(l net.Listener, limits ConnLimits, proxies Proxies) net.Listener {
	return &limitedListener{Listener: l, limits: limits, proxies: proxies, rows: newRows(),
		networks: map[netip.Prefix]*network{}}
}

// rows are connections that may be closed to make room, the oldest first.
type rows struct {
	strangers *list.List // of *countedConn on which nobody is proved
	idle      *list.List // of those on which somebody is, and no request is open
}

func newRows() rows { return rows{strangers: list.New(), idle: list.New()} }

// firstToClose is the one that is closed next; nil: none may be.
func (r rows) firstToClose() *countedConn {
	front := r.strangers.Front()
	if front == nil {
		front = r.idle.Front()
	}
	if front == nil {
		return nil
	}
	c, _ := front.Value.(*countedConn)
	return c
}

type limitedListener struct {
	net.Listener
	limits  ConnLimits
	proxies Proxies

	mu       sync.Mutex
	all      int
	rows     rows
	networks map[netip.Prefix]*network
}

// network is what is open from one; that of the zero Prefix is the proxies'.
type network struct {
	open int
	rows rows
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		counted := &countedConn{Conn: conn, listener: l, from: l.originOf(conn)}
		oldest, ok := l.enterConn(counted)
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

// originOf is what the connection counts for; the zero Prefix for a proxy's.
func (l *limitedListener) originOf(conn net.Conn) netip.Prefix {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || l.proxies.Trust(at.Addr()) {
		return netip.Prefix{}
	}
	return Network(at.Addr().Unmap().WithZone(""))
}

// enterConn counts a connection, if there is a place, and returns the one whose place
// it took, which is to be closed.
func (l *limitedListener) enterConn(c *countedConn) (oldest *countedConn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.networks[c.from]
	var full rows
	switch {
	case l.limits.PerAddress > 0 && c.from.IsValid() && n != nil && n.open >= l.limits.PerAddress:
		full = n.rows
	case l.limits.All > 0 && l.all >= l.limits.All:
		full = l.rows
	}
	if full != (rows{}) {
		if oldest = full.firstToClose(); oldest == nil {
			return nil, false
		}
		l.removeConn(oldest)
	}
	if n = l.networks[c.from]; n == nil {
		n = &network{rows: newRows()}
		l.networks[c.from] = n
	}
	l.all++
	n.open++
	if c.from.IsValid() { // through a proxy come people of whom it knows nothing
		c.inAll, c.inOwn = l.rows.strangers.PushBack(c), n.rows.strangers.PushBack(c)
	}
	return oldest, true
}

// removeConn counts a connection no longer. Repeated, it changes nothing.
func (l *limitedListener) removeConn(c *countedConn) {
	if c.left {
		return
	}
	c.left = true
	l.markBusy(c)
	l.all--
	n := l.networks[c.from]
	if n.open--; n.open == 0 {
		delete(l.networks, c.from)
	}
}

// markBusy keeps a connection from being closed to make room.
func (l *limitedListener) markBusy(c *countedConn) {
	if c.inAll == nil {
		return
	}
	n := l.networks[c.from]
	l.rows.strangers.Remove(c.inAll) // from the list that it is in; the other does nothing
	l.rows.idle.Remove(c.inAll)
	n.rows.strangers.Remove(c.inOwn)
	n.rows.idle.Remove(c.inOwn)
	c.inAll, c.inOwn = nil, nil
}

// markIdle lets a connection be closed when there are no strangers': its request ended.
func (l *limitedListener) markIdle(c *countedConn) {
	if c.left || !c.proved || c.inAll != nil || !c.from.IsValid() {
		return
	}
	c.inAll, c.inOwn = l.rows.idle.PushBack(c), l.networks[c.from].rows.idle.PushBack(c)
}

type countedConn struct {
	net.Conn
	listener *limitedListener
	from     netip.Prefix

	// guarded by the listener's lock
	left, proved bool
	inAll, inOwn *list.Element // nil while somebody is proved whose request is open
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.removeConn(c)
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
		c.proved = true
		c.listener.markBusy(c)
	}
}

// connState notes when a connection becomes idle. One that becomes busy again is
// so for the listener once somebody is proved on it.
func connState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*countedConn)
	if !ok || state != http.StateIdle {
		return
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.markIdle(c)
}
