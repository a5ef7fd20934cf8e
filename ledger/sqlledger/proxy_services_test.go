//go:build services

package sqlledger_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a store and PostgreSQL. It counts round trips, and can lose
// the server's answers.
type proxy struct {
	address string
	trips   atomic.Int64 // messages after which the client waits: Sync and Query
	lost    atomic.Bool  // answers are dropped, with the connection
	group   sync.WaitGroup
}

// startProxy returns a proxy to the database, and the URL of the database through
// it.
func startProxy(t *testing.T, database string) (*proxy, string) {
	t.Helper()
	address, err := url.Parse(database)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{address: address.Host}
	p.group.Go(func() { p.acceptClients(listener) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.group.Wait()
	})
	address.Host = listener.Addr().String()
	return p, address.String()
}

func (p *proxy) acceptClients(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.address)
		if err != nil {
			_ = client.Close()
			return
		}
		p.group.Go(func() { p.forward(client, server) })
		p.group.Go(func() { p.returnAnswers(client, server) })
	}
}

// forward passes on what the client says, message by message. The first message has
// no type before its length.
func (p *proxy) forward(client, server net.Conn) {
	defer func() { _ = server.Close() }()
	head := make([]byte, 4)
	for {
		if _, err := io.ReadFull(client, head); err != nil {
			return
		}
		if len(head) == 5 && (head[0] == 'S' || head[0] == 'Q') {
			p.trips.Add(1) // before the answer, which may be read at once
		}
		if _, err := server.Write(head); err != nil {
			return
		}
		length := int64(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
		if _, err := io.CopyN(server, client, length); err != nil {
			return
		}
		head = make([]byte, 5)
	}
}

func (p *proxy) returnAnswers(client, server net.Conn) {
	defer func() { _ = client.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		if err != nil || p.lost.Load() {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
