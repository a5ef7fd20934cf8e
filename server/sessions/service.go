package sessions

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/proto/forewarm/v1/forewarmv1connect"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
)

// mostMessage bounds what a daemon sends at once, in bytes.
const mostMessage = session.MostData + 4<<10

// Handler returns the path and the handler of NodeService, for requests whose key was proved
// to be a node's.
func (h *Hub) Handler() (string, http.Handler) {
	return forewarmv1connect.NewNodeServiceHandler(service{h}, connect.WithReadMaxBytes(mostMessage))
}

// service is NodeService, as daemons call it.
type service struct{ hub *Hub }

var errSuperseded = connect.NewError(connect.CodeAborted, errors.New("another daemon of this node has attached"))

var errLeaving = connect.NewError(connect.CodeUnavailable, errors.New("the server ends"))

// Attach implements NodeService.
func (s service) Attach(ctx context.Context,
	stream *connect.BidiStream[forewarmv1.AttachRequest, forewarmv1.AttachResponse]) error {
	first := abortUnless(ctx)
	hello, err := stream.Receive()
	first()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(SignWithin, func() {
		cancel(connect.NewError(connect.CodeDeadlineExceeded, errors.New("no sign of life came")))
	})
	defer silence.Stop()
	d, err := s.hub.checkDaemon(ctx)
	if err != nil {
		return err
	}
	if d.BootID != hello.GetBootId() {
		return connect.NewError(connect.CodePermissionDenied, &ledger.DaemonRefusedError{NodeID: d.NodeID,
			Reason: ledger.RefusedOtherBoot})
	}
	at := &attached{nodeID: d.NodeID, joined: d.JoinedAt, epoch: hello.GetEpoch(), isolation: hello.GetIsolation(),
		tell: make(chan *forewarmv1.AttachResponse, 4), gone: make(chan struct{}), end: cancel}
	if err := s.hub.attach(ctx, at); err != nil {
		return err
	}
	defer s.hub.detach(ctx, at)
	broken := make(chan error, 1)
	go func() { // it ends with the stream, which ends when this function does
		for {
			if _, err := stream.Receive(); err != nil {
				broken <- err
				return
			}
			silence.Reset(SignWithin)
		}
	}()
	return s.hub.keepTelling(ctx, stream, at, broken)
}

// keepTelling sends what there is to tell, and signs of life, until the stream breaks.
func (h *Hub) keepTelling(ctx context.Context,
	stream *connect.BidiStream[forewarmv1.AttachRequest, forewarmv1.AttachResponse], at *attached,
	broken <-chan error) error {
	tick := time.NewTicker(SignEvery)
	defer tick.Stop()
	judge := time.NewTicker(judgeEvery)
	defer judge.Stop()
	next := &forewarmv1.AttachResponse{}
	for {
		if err := stream.Send(next); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-h.leaving:
			return errLeaving
		case err := <-broken:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case next = <-at.tell:
		case <-tick.C:
			next = &forewarmv1.AttachResponse{}
		case <-judge.C:
			if h.isReplaced(ctx, at) {
				return errReplaced
			}
			next = &forewarmv1.AttachResponse{}
		}
	}
}

const (
	// judgeEvery is how often it is looked whether a daemon that is attached is still its node's.
	judgeEvery = 30 * time.Second
	// judgeWithin bounds that look, so that signs of life go on through an outage of the database.
	judgeWithin = 5 * time.Second
)

// isReplaced reports whether an attached daemon is surely not its node's any more.
func (h *Hub) isReplaced(ctx context.Context, at *attached) bool {
	ctx, cancel := context.WithTimeout(ctx, judgeWithin)
	defer cancel()
	still, err := ledger.IsStillJoined(ctx, h.ledger.Store(), at.nodeID, at.joined)
	return err == nil && !still
}

var errReplaced = connect.NewError(connect.CodePermissionDenied,
	errors.New("the node is over, or another daemon has joined for it"))

// abortUnless ends a stream unless the function that it returns is called soon: with its first message.
func abortUnless(ctx context.Context) (came func()) {
	timer := time.AfterFunc(SignWithin, func() { abort(ctx) })
	return func() { timer.Stop() }
}

// isLater reports whether a daemon is its node's rather than another one: it joined later, or has joined once with it
// and began later. What was said of epochs before a join may have been forged.
func (at *attached) isLater(than *attached) bool {
	return at.joined.After(than.joined) || at.joined.Equal(than.joined) && at.epoch > than.epoch
}

// attach makes a daemon the one of its node, unless a later one is.
func (h *Hub) attach(ctx context.Context, at *attached) error {
	h.mu.Lock()
	before := h.nodes[at.nodeID]
	if before != nil && before.isLater(at) {
		h.mu.Unlock()
		return errSuperseded
	}
	h.nodes[at.nodeID] = at
	h.mu.Unlock()
	if before != nil {
		before.end(errSuperseded)
	}
	h.metrics.NodeStreams(1)
	h.log.InfoContext(ctx, "a node's daemon is attached", "node", at.nodeID, "isolation", at.isolation)
	return nil
}

func (h *Hub) detach(ctx context.Context, at *attached) {
	close(at.gone)
	h.mu.Lock()
	if h.nodes[at.nodeID] == at {
		delete(h.nodes, at.nodeID)
	}
	h.mu.Unlock()
	h.metrics.NodeStreams(-1)
	h.log.InfoContext(ctx, "a node's daemon is not attached any more", "node", at.nodeID)
}

// Serve implements NodeService.
func (s service) Serve(ctx context.Context,
	stream *connect.BidiStream[forewarmv1.ServeRequest, forewarmv1.ServeResponse]) error {
	came := abortUnless(ctx)
	first, err := stream.Receive()
	came()
	if err != nil {
		return err
	}
	h := s.hub
	if _, err := h.checkDaemon(ctx); err != nil { // its key was proved when the stream began
		return err
	}
	h.mu.Lock()
	want := h.waiting[first.GetSessionId()]
	if want != nil && want.nodeID == auth.From(ctx).NodeID {
		delete(h.waiting, first.GetSessionId())
	} else {
		want = nil
	}
	h.mu.Unlock()
	if want == nil {
		return connect.NewError(connect.CodeNotFound, errors.New("nobody waits for this session"))
	}
	c := &carrier{stream: stream, closed: make(chan struct{})}
	want.came <- c
	select {
	case <-c.closed:
	case <-ctx.Done():
	}
	c.Close()
	if !c.sending.TryLock() { // what is being sent is the last, and is not sent if the node does not read
		abort(ctx)
		c.sending.Lock()
	}
	defer c.sending.Unlock()
	return nil
}

type abortKey struct{}

// WithAbort returns a context for a request of the handler, with what ends its stream at once,
// also while something is being sent.
func WithAbort(ctx context.Context, end func()) context.Context {
	return context.WithValue(ctx, abortKey{}, end)
}

func abort(ctx context.Context) {
	if end, ok := ctx.Value(abortKey{}).(func()); ok {
		end()
	}
}

// serveStream is what a carrier needs of its stream.
type serveStream interface {
	Send(*forewarmv1.ServeResponse) error
	Receive() (*forewarmv1.ServeRequest, error)
}

// carrier is a session that a daemon came with.
type carrier struct {
	stream serveStream

	sending sync.Mutex
	once    sync.Once
	closed  chan struct{}
}

// Send implements Conn.
func (c *carrier) Send(channel session.Channel, data []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	select {
	case <-c.closed:
		return io.ErrClosedPipe
	default:
	}
	return c.stream.Send(&forewarmv1.ServeResponse{Frame: &forewarmv1.Frame{Channel: uint32(channel), Data: data}})
}

// Receive implements Conn. A node that is there sends something now and then, if only nothing in a
// message; one that is waited for in vain is lost. While nobody waits, its user is slow.
func (c *carrier) Receive() (session.Channel, []byte, error) {
	silence := time.AfterFunc(SignWithin, c.Close)
	defer silence.Stop()
	got, err := c.stream.Receive()
	if err != nil {
		return 0, nil, err
	}
	f := got.GetFrame()
	return session.Channel(f.GetChannel()), f.GetData(), nil //nolint:gosec // another number is no channel either way
}

// Close implements Conn.
func (c *carrier) Close() { c.once.Do(func() { close(c.closed) }) }
