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
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/forewarm/forewarm/client"
	wire "github.com/forewarm/forewarm/contract/session"
)

// Server is where sessions are opened: the API, and what sends the handshakes. Its HTTP
// client must not limit the time or size of what it carries.
type Server struct {
	API  *client.Client
	HTTP *http.Client
	// Patience is how long Run tries to come back to a command; 0: for as long as the command waits.
	Patience time.Duration
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

	Interrupted func(cause error) // called when the connection is cut, which is tried anew; nil: nobody is told
	Resumed     func()            // called when it stands again; nil: nobody is told
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
// being hung up, if it has not been.
var ErrCut = errors.New("the connection to the control plane was cut before the session had ended")

// Run runs a command on a node of an allocation until it has ended, and returns its exit code.
// When the connection is cut, or the daemon or the server ends, the command goes on, and Run comes back to
// it; nothing that either has sent is lost. When ctx ends first, the command is hung up. An
// *EndError says that it did not end by itself, ErrCut that it could not be come back to within
// a minute, a *client.Error that the server refused.
func (s Server) Run(ctx context.Context, allocationID string, c Command) (wire.End, error) {
	w, err := s.begin(ctx, allocationID, c)
	if err != nil {
		return wire.End{}, err
	}
	defer w.leave()
	if c.Stdin != nil {
		go w.pump(c.Stdin) // a read from a terminal cannot be ended: it goes with the program
	} else {
		_ = w.Send(wire.Close, []byte{byte(wire.Stdin)}) // that it is over, its receiver is told
	}
	go w.forward(c.Resize, c.Signals)
	end, err := w.receive(c.Stdout, c.Stderr)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return end, err
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
	address, err := s.API.Address(query, path...)
	if err != nil {
		return nil, err
	}
	conn, _, err := websocket.Dial(ctx, address, options) //nolint:bodyclose // it is the connection
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

// sender sends messages of several sources on one connection.
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
