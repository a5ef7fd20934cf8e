// Package session runs commands on the nodes of an allocation, and connects to ports there.
//
// Both go through the control plane to the daemon of the node, so that neither needs a way
// into the node's network. What a session carries is what package contract/session
// describes. It is a package of its own because it brings a WebSocket along.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/coder/websocket"

	"github.com/forewarm/forewarm/client"
	wire "github.com/forewarm/forewarm/contract/session"
)

// Server is where sessions are opened: the API, and what sends the handshakes. Its HTTP
// client must not limit the time or size of what it carries.
type Server struct {
	API  *client.Client
	HTTP *http.Client
}

// Command is what to run, and what it is connected to.
type Command struct {
	wire.Command
	Node    int              // the rank of the node
	Stdin   io.Reader        // nil: nothing to read
	Stdout  io.Writer        // nil: dropped
	Stderr  io.Writer        // nil: dropped
	Resize  <-chan wire.Size // of a terminal; nil: it keeps its size
	Signals <-chan string    // names such as INT, for the command's process group; nil: none
}

// EndError says that a session ended without its command's exit code.
type EndError struct{ wire.End }

// Error says why.
func (e *EndError) Error() string {
	if e.Reason == "" {
		return "the session ended: " + e.Code
	}
	return e.Reason
}

// ErrCut says that the connection ended, and nobody knows whether the command has. It is
// being hung up.
var ErrCut = errors.New("the connection to the control plane was cut before the session had ended")

// Run runs a command on a node of an allocation until it has ended, and returns its exit code.
// A *client.Error: the server refused; an *EndError: the command did not end by itself;
// ErrCut. When the context ends, the command is hung up.
func (s Server) Run(ctx context.Context, allocationID string, c Command) (wire.End, error) {
	conn, err := s.dial(ctx, url.Values{"node": {strconv.Itoa(c.Node)}}, "allocations", allocationID, "exec")
	if err != nil {
		return wire.End{}, err
	}
	defer func() { _ = conn.CloseNow() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &sender{ctx: ctx, conn: conn}
	begin := c.Encode()
	if len(begin) > wire.MostData {
		return wire.End{}, fmt.Errorf("the command and its environment have %d bytes in JSON, and may have %d", len(begin),
			wire.MostData)
	}
	if err := out.send(wire.Begin, begin); err != nil {
		return wire.End{}, fmt.Errorf("%w: %w", ErrCut, err)
	}
	if c.Stdin != nil {
		go out.pump(c.Stdin) // a read from a terminal cannot be ended: it goes with the program
	} else if err := out.send(wire.Close, []byte{byte(wire.Stdin)}); err != nil {
		return wire.End{}, fmt.Errorf("%w: %w", ErrCut, err)
	}
	go out.forward(c.Resize, c.Signals)
	return receive(ctx, conn, c.Stdout, c.Stderr)
}

// receive writes what a command says, until it has ended.
func receive(ctx context.Context, conn *websocket.Conn, stdout, stderr io.Writer) (wire.End, error) {
	for {
		_, message, err := conn.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return wire.End{}, ctx.Err()
			}
			return wire.End{}, fmt.Errorf("%w: %w", ErrCut, err)
		}
		c, data, err := wire.ParseMessage(message)
		if err != nil {
			return wire.End{}, err
		}
		to := io.Writer(nil)
		switch c {
		case wire.Stdout:
			to = stdout
		case wire.Stderr:
			to = stderr
		case wire.Result:
			return endOf(conn, data)
		}
		if to != nil {
			if _, err := to.Write(data); err != nil {
				return wire.End{}, fmt.Errorf("writing what the command says: %w", err)
			}
		}
	}
}

// endOf reads how a session ended, and takes leave.
func endOf(conn *websocket.Conn, data []byte) (wire.End, error) {
	end, err := wire.ParseEnd(data)
	_ = conn.Close(websocket.StatusNormalClosure, "")
	if err == nil && end.Code != "" {
		err = &EndError{end}
	}
	return end, err
}

// dial opens a WebSocket, or returns the server's problem.
func (s Server) dial(ctx context.Context, query url.Values, path ...string) (*websocket.Conn, error) {
	header := http.Header{}
	s.API.Authorize(header)
	refused := &problemKeeper{next: s.HTTP.Transport}
	h := *s.HTTP
	h.Transport = refused
	options := &websocket.DialOptions{HTTPClient: &h, HTTPHeader: header, Subprotocols: []string{wire.Protocol}}
	conn, _, err := websocket.Dial(ctx, s.API.Address(query, path...), options) //nolint:bodyclose // it is the connection
	if err != nil {
		if refused.problem != nil {
			return nil, refused.problem
		}
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	if conn.Subprotocol() != wire.Protocol {
		_ = conn.CloseNow()
		return nil, errors.New("opening a session: the server does not speak " + wire.Protocol)
	}
	conn.SetReadLimit(wire.MostData + 1)
	return conn, nil
}

// problemKeeper keeps the problem with which a handshake is answered.
type problemKeeper struct {
	next    http.RoundTripper
	problem error
}

// RoundTrip implements http.RoundTripper.
func (k *problemKeeper) RoundTrip(r *http.Request) (*http.Response, error) {
	next := k.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		k.problem = client.ReadProblem(resp)
	}
	return resp, err
}

// sender sends messages of several sources.
type sender struct {
	ctx  context.Context //nolint:containedctx // of the session, which the sender is a part of
	mu   sync.Mutex
	conn *websocket.Conn
}

func (s *sender) send(c wire.Channel, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.Write(s.ctx, websocket.MessageBinary, wire.AppendMessage(nil, c, data))
}

// pump sends what a reader has, to its end.
func (s *sender) pump(from io.Reader) {
	buf := make([]byte, wire.MostData)
	for {
		n, err := from.Read(buf)
		if n > 0 && s.send(wire.Stdin, buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = s.send(wire.Close, []byte{byte(wire.Stdin)})
			return
		}
	}
}

// forward sends sizes and signals.
func (s *sender) forward(sizes <-chan wire.Size, signals <-chan string) {
	for {
		var err error
		select {
		case <-s.ctx.Done():
			return
		case size := <-sizes:
			err = s.send(wire.Resize, size.Encode())
		case name := <-signals:
			err = s.send(wire.Signal, []byte(name))
		}
		if err != nil {
			return
		}
	}
}
