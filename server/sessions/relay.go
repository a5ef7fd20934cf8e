package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/ledger"
)

// Servers are the other servers of the installation.
type Servers interface {
	Others() []ledger.Peer
	// DialSession connects to another server for one session.
	DialSession(ctx context.Context, to ledger.Peer) (net.Conn, error)
}

// asked is what a server asks another for: whether the daemon of a node is attached there,
// or a session.
type asked struct {
	NodeID string `json:"node_id"`
	Open   []byte `json:"open,omitempty"` // an OpenSession; none: only whether it is attached
}

// answered is the answer: empty where it is attached, and the session is open.
type answered struct {
	Error string `json:"error,omitempty"`
}

const (
	relayNotAttached = "not_attached"
	relayNoAnswer    = "no_answer"
	relayWithin      = 5 * time.Second // a server answers what needs no daemon
	mostRelayed      = 256 << 10       // of what is asked, in bytes
)

// relay asks all other servers, as there are few, which has the daemon of a node: what is
// written down of it would be late after each change.
type relay struct{ servers Servers }

// NewRelay returns a way to daemons that are attached to other servers.
func NewRelay(s Servers) Relay { return relay{s} }

// Reaches implements Relay.
func (r relay) Reaches(ctx context.Context, nodeID string) (bool, error) {
	conn, err := r.find(ctx, asked{NodeID: nodeID})
	if errors.Is(err, ErrNotAttached) {
		return false, nil
	}
	if err == nil {
		_ = conn.Close()
	}
	return err == nil, err
}

// Open implements Relay.
func (r relay) Open(ctx context.Context, nodeID string, o *forewarmv1.OpenSession) (Conn, error) {
	open, err := proto.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding a session: %w", err)
	}
	conn, err := r.find(ctx, asked{NodeID: nodeID, Open: open})
	if err != nil {
		return nil, err
	}
	return session.NewLine(conn), nil
}

// find asks the others in turn, until one has the daemon. One that cannot be reached has
// none that could be reached.
func (r relay) find(ctx context.Context, a asked) (net.Conn, error) {
	for _, p := range r.servers.Others() {
		conn, err := r.servers.DialSession(ctx, p)
		if err != nil {
			continue
		}
		err = ask(conn, a)
		if err == nil {
			return conn, nil
		}
		_ = conn.Close()
		if errors.Is(err, ErrNoAnswer) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("looking for the daemon of node %s: %w", a.NodeID, ErrNotAttached)
}

// ask asks a server on a connection that is its answer's, and then the session's.
func ask(conn net.Conn, a asked) error {
	within := relayWithin
	if a.Open != nil {
		within += openWithin
	}
	_ = conn.SetDeadline(time.Now().Add(within)) //nolint:forbidigo // a socket's deadlines are the machine's
	text, err := json.Marshal(a)
	if err == nil {
		_, err = conn.Write(session.AppendFrame(nil, text))
	}
	if err != nil {
		return fmt.Errorf("asking another server: %w", err)
	}
	text, err = session.ReadFrame(conn, nil, mostRelayed)
	var got answered
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	_ = conn.SetDeadline(time.Time{})
	switch {
	case err != nil:
		return fmt.Errorf("asking another server: %w", err)
	case got.Error == relayNoAnswer:
		return ErrNoAnswer
	case got.Error != "":
		return ErrNotAttached
	}
	return nil
}

// ServeRelayed answers another server, and carries the session that it asks for.
func (h *Hub) ServeRelayed(ctx context.Context, conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(relayWithin)) //nolint:forbidigo // a socket's deadlines are the machine's
	text, err := session.ReadFrame(conn, nil, mostRelayed)
	var a asked
	if err != nil || json.Unmarshal(text, &a) != nil {
		return
	}
	node, got := h.openRelayed(ctx, a)
	_ = conn.SetDeadline(time.Time{})
	text, err = json.Marshal(got)
	if err == nil {
		_, err = conn.Write(session.AppendFrame(nil, text))
	}
	if node == nil {
		return
	}
	defer node.Close()
	if err != nil {
		return
	}
	l := session.NewLine(conn)
	stop := context.AfterFunc(ctx, l.Close)
	defer stop()
	var back sync.WaitGroup
	back.Go(func() {
		defer node.Close() // whoever asked has gone
		copyMessages(node, l)
	})
	copyMessages(l, node)
	_ = conn.SetReadDeadline(time.Now().Add(relayWithin)) //nolint:forbidigo // what was sent is read there first
	late := time.AfterFunc(relayWithin, node.Close)       // it may wait for a node that does not read
	defer late.Stop()
	back.Wait()
}

func (h *Hub) openRelayed(ctx context.Context, a asked) (Conn, answered) {
	if a.Open == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.nodes[a.NodeID] == nil {
			return nil, answered{relayNotAttached}
		}
		return nil, answered{}
	}
	var o forewarmv1.OpenSession
	if proto.Unmarshal(a.Open, &o) != nil {
		return nil, answered{relayNotAttached}
	}
	node, err := h.OpenHere(ctx, a.NodeID, &o)
	switch {
	case errors.Is(err, ErrNoAnswer):
		return nil, answered{relayNoAnswer}
	case err != nil:
		return nil, answered{relayNotAttached}
	}
	return node, answered{}
}

// copyMessages hands on messages until either side ends.
func copyMessages(to, from Conn) {
	for {
		c, data, err := from.Receive()
		if err != nil || to.Send(c, data) != nil {
			return
		}
	}
}
