package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// dialWithin is how long a server may take to accept a connection until the next one is tried.
const dialWithin = time.Second

// balancer spreads the connections of daemons over the servers, one after the other, as a
// load balancer for TCP does: a daemon's report and its sessions may be with different
// servers. One that is frozen gets connections, too.
type balancer struct {
	Port     int
	listener net.Listener
	servers  []string
	turn     atomic.Uint64

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func newBalancer(servers []string) (*balancer, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", loopbackAddress(0))
	if err != nil {
		return nil, fmt.Errorf("opening the balancer: %w", err)
	}
	b := &balancer{Port: l.Addr().(*net.TCPAddr).Port, listener: l, servers: servers, open: map[net.Conn]bool{}}
	go b.acceptAll()
	return b, nil
}

func (b *balancer) acceptAll() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return // it was closed
		}
		go b.carry(conn)
	}
}

// carry carries a connection to the next server that accepts one, until either side ends it.
func (b *balancer) carry(conn net.Conn) {
	defer b.forget(conn)
	if !b.remember(conn) {
		return
	}
	server, err := b.dialNext()
	if err != nil {
		return // all are away
	}
	defer b.forget(server)
	if !b.remember(server) {
		return
	}
	ended := make(chan struct{}, 2)
	for to, from := range map[net.Conn]net.Conn{conn: server, server: conn} {
		go func() {
			_, _ = io.Copy(to, from) // whatever ended it, both are closed
			ended <- struct{}{}
		}()
	}
	<-ended
}

func (b *balancer) dialNext() (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialWithin}
	var failed error
	for range b.servers {
		address := b.servers[(b.turn.Add(1)-1)%uint64(len(b.servers))]
		conn, err := dialer.DialContext(context.Background(), "tcp", address)
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// remember reports whether the balancer is still open.
func (b *balancer) remember(conn net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[conn] = true
	return !b.closed
}

func (b *balancer) forget(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, conn)
	_ = conn.Close() // it may be closed
}

// closeAll ends it and all that it carries.
func (b *balancer) closeAll() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	err := b.listener.Close()
	for conn := range b.open {
		_ = conn.Close()
	}
	return err
}
