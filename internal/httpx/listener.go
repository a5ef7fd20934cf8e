package httpx

import (
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

// LimitConnections returns l with bounds: it answers connections beyond them with
// 503 and closes them, so that who holds many keeps no one else out for long.
func LimitConnections(l net.Listener, limits ConnLimits, proxies Proxies) net.Listener {
	return &limitedListener{Listener: l, limits: limits, proxies: proxies, open: map[netip.Prefix]int{}}
}

type limitedListener struct {
	net.Listener
	limits  ConnLimits
	proxies Proxies

	mu   sync.Mutex
	all  int
	open map[netip.Prefix]int
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := l.network(conn)
		if l.enter(from) {
			return &countedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // an empty buffer takes it at once
		_, _ = io.WriteString(conn, tooMany)
		_ = conn.Close()
	}
}

// network is what the connection counts for; the zero Prefix for a proxy's.
func (l *limitedListener) network(conn net.Conn) netip.Prefix {
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || l.proxies.Trust(at.Addr()) {
		return netip.Prefix{}
	}
	return Network(at.Addr().Unmap().WithZone(""))
}

func (l *limitedListener) enter(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limits.All > 0 && l.all >= l.limits.All {
		return false
	}
	if l.limits.PerAddress > 0 && from.IsValid() && l.open[from] >= l.limits.PerAddress {
		return false
	}
	l.all++
	l.open[from]++
	return true
}

func (l *limitedListener) leave(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
}

type countedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
