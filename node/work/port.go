package work

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/node/hold"
)

// dialWithin is how long a program on the same machine may take to accept.
const dialWithin = 5 * time.Second

// Connect connects to a port of the node's loopback interface, and carries bytes both ways
// until both have ended, or the session has. Where work has a user of its own, it reaches what
// that user's programs listen on, and nothing of the node or of other holders.
func (Runner) Connect(ctx context.Context, place hold.Place, port int, s Stream) session.End {
	host := "localhost"
	if place.OwnUser {
		ip, ok := loopbackListener(place.UID, port)
		if !ok {
			return session.End{Code: session.NotStarted, Reason: "nothing of this allocation listens on port " +
				strconv.Itoa(port) + " of the node's loopback interface"}
		}
		host = ip.String()
	}
	d := net.Dialer{Timeout: dialWithin}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		reason := httpx.DescribeFailure(err, "port "+strconv.Itoa(port)+" of the node's loopback interface")
		if errors.Is(err, syscall.ECONNREFUSED) {
			reason = "nothing listens on port " + strconv.Itoa(port) + " of the node's loopback interface"
		}
		return session.End{Code: session.NotStarted, Reason: reason}
	}
	tcp, _ := conn.(*net.TCPConn)
	defer func() { _ = tcp.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	defer stop()
	said := make(chan struct{}) // closed once the holder has said all
	go func() {
		tell := sync.OnceFunc(func() { close(said) })
		defer tell()
		receiveInto(tcp, s, tell)
	}()
	sendFrom(tcp, s)
	select {
	case <-said:
	case <-ctx.Done():
	}
	return session.End{}
}

// receiveInto writes what the holder sends to a connection, until the session is over.
func receiveInto(conn *net.TCPConn, s Stream, said func()) {
	for {
		c, data, err := s.Receive()
		switch {
		case err != nil:
			_ = conn.Close()
			return
		case c == session.Stdin:
			if _, err := conn.Write(data); err != nil {
				said() // the other side reads no more
			}
		case c == session.Close:
			_ = conn.CloseWrite()
			said()
		}
	}
}

// sendFrom sends what comes from a connection, to its end.
func sendFrom(conn *net.TCPConn, s Stream) {
	buf := make([]byte, session.MostData)
	for {
		n, err := conn.Read(buf)
		if n > 0 && s.Send(session.Stdout, buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = s.Send(session.Close, []byte{byte(session.Stdout)})
			return
		}
	}
}
