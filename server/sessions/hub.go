// Package sessions carries what the holders of allocations do on nodes: commands and
// connections to ports, between their WebSocket and the stream of the node's daemon.
//
// Nobody here decides who may: api asks the ledger, before a session begins and while it
// goes on. A session holds no more than one message in each direction; whoever does not read
// holds up whoever writes.
package sessions

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect"

	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/auth"
)

// How long who is there may be silent, and how long things may take.
const (
	SignEvery  = 10 * time.Second // a sign of life goes
	SignWithin = 30 * time.Second // one comes, or a stream is given up
	openWithin = 10 * time.Second // the daemon comes with a session that it was asked for
)

// Conn is one session, as its user's side sees it. Send and Receive may be called at the same
// time, each by one goroutine.
type Conn interface {
	Send(c session.Channel, data []byte) error
	// Receive returns the next message, whose data is valid until the next call.
	Receive() (session.Channel, []byte, error)
	// Close ends the session, unless it has ended: the node hangs up what runs.
	Close()
}

// Metrics are what is counted of sessions.
type Metrics interface {
	NodeStreams(change int)
	SessionBegan(kind string)
	SessionEnded(kind, code string)
}

// Hub knows the daemons that are attached to this server. It is safe for concurrent use.
type Hub struct {
	ledger  *verbs.Ledger
	log     *slog.Logger
	metrics Metrics
	relay   Relay // nil: there are no other servers
	leave   sync.Once
	leaving chan struct{} // closed once the server ends

	mu      sync.Mutex
	nodes   map[string]*attached // by node
	waiting map[string]*expected // by session
}

// Relay finds a session's way to daemons that are attached to other servers.
type Relay interface {
	// Reaches reports whether a daemon is attached to another server.
	Reaches(ctx context.Context, nodeID string) (bool, error)
	// Open is Hub.Open, on the server to which the daemon is attached. ErrNotAttached: it is
	// attached to none.
	Open(ctx context.Context, nodeID string, o *forewarmv1.OpenSession) (Conn, error)
}

// NewHub returns a hub to which nobody is attached.
func NewHub(l *verbs.Ledger, log *slog.Logger, m Metrics) *Hub {
	return &Hub{ledger: l, log: log, metrics: m, nodes: map[string]*attached{},
		waiting: map[string]*expected{}, leaving: make(chan struct{})}
}

// UseRelay gives the hub a way to daemons that are attached to other servers. It is called
// before anything is opened.
func (h *Hub) UseRelay(r Relay) { h.relay = r }

// Leave ends all streams of daemons, because the server ends: they come back to it, or to
// another one.
func (h *Hub) Leave() { h.leave.Do(func() { close(h.leaving) }) }

// Leaving is closed once the server ends.
func (h *Hub) Leaving() <-chan struct{} { return h.leaving }

// attached is a daemon whose stream is here.
type attached struct {
	nodeID    string
	joined    time.Time
	epoch     int64
	isolation string
	tell      chan *forewarmv1.AttachResponse
	gone      chan struct{} // closed once it is not attached any more
	end       context.CancelCauseFunc
}

// expected is a session with which a daemon is to come.
type expected struct {
	nodeID string
	came   chan *carrier
}

// The errors of Open.
var (
	// ErrNotAttached says that no daemon of the node is in reach.
	ErrNotAttached = errors.New("the node's daemon is not in reach")
	// ErrNoAnswer says that a daemon was asked, and did not come.
	ErrNoAnswer = errors.New("the node's daemon did not open the session in time")
)

// Open has the daemon of a node open a session. The session's id is set here.
func (h *Hub) Open(ctx context.Context, nodeID string, o *forewarmv1.OpenSession) (Conn, error) {
	c, err := h.OpenHere(ctx, nodeID, o)
	if errors.Is(err, ErrNotAttached) && h.relay != nil {
		return h.relay.Open(ctx, nodeID, o)
	}
	return c, err
}

// OpenHere is Open for a daemon that is attached to this server.
func (h *Hub) OpenHere(ctx context.Context, nodeID string, o *forewarmv1.OpenSession) (Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	o.SessionId = hex.EncodeToString(random[:])
	want := &expected{nodeID: nodeID, came: make(chan *carrier, 1)}
	h.mu.Lock()
	at := h.nodes[nodeID]
	if at != nil {
		h.waiting[o.SessionId] = want
	}
	h.mu.Unlock()
	if at == nil {
		return nil, fmt.Errorf("opening a session on node %s: %w", nodeID, ErrNotAttached)
	}
	defer func() {
		h.mu.Lock()
		delete(h.waiting, o.SessionId)
		h.mu.Unlock()
		select {
		case late := <-want.came: // nobody waits for it any more
			late.Close()
		default:
		}
	}()
	select {
	case at.tell <- &forewarmv1.AttachResponse{Open: o}:
	case <-at.gone:
		return nil, fmt.Errorf("opening a session on node %s: %w", nodeID, ErrNotAttached)
	case <-ctx.Done():
		return nil, fmt.Errorf("opening a session on node %s: %w", nodeID, ErrNoAnswer)
	}
	select {
	case c := <-want.came:
		return c, nil
	case <-at.gone: // whether it was asked before is not known
		return nil, fmt.Errorf("opening a session on node %s: %w", nodeID, ErrNotAttached)
	case <-ctx.Done():
		return nil, fmt.Errorf("opening a session on node %s: %w", nodeID, ErrNoAnswer)
	}
}

// Reaches reports whether the daemon of a node is attached to this server, or to another.
func (h *Hub) Reaches(ctx context.Context, nodeID string) (bool, error) {
	h.mu.Lock()
	here := h.nodes[nodeID] != nil
	h.mu.Unlock()
	if here || h.relay == nil {
		return here, nil
	}
	return h.relay.Reaches(ctx, nodeID)
}

// Began counts a session of a kind.
func (h *Hub) Began(kind string) { h.metrics.SessionBegan(kind) }

// Ended counts how a session of a kind ended.
func (h *Hub) Ended(kind string, end session.End) { h.metrics.SessionEnded(kind, end.Code) }

// Ask has the daemon of a node report at once, if it is attached here, because the answer to
// its report has something for it. Others report every ten seconds.
func (h *Hub) Ask(nodeID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.nodes[nodeID]; at != nil {
		select {
		case at.tell <- &forewarmv1.AttachResponse{Report: true}:
		default: // it is told something already
		}
	}
}

// checkDaemon returns what is known of the daemon that sends a request, and refuses one whose key is not its node's any
// more.
func (h *Hub) checkDaemon(ctx context.Context) (ledger.Daemon, error) {
	known, err := ledger.CheckDaemon(ctx, h.ledger.Store(), auth.From(ctx))
	switch {
	case errors.Is(err, ledger.ErrDenied):
		return known.Daemon, errReplaced
	case err != nil:
		return known.Daemon, connect.NewError(connect.CodeUnavailable, err)
	}
	return known.Daemon, nil
}
