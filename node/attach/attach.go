// Package attach keeps the daemon of a node in reach of its control plane, and opens the
// sessions that it asks for.
//
// The daemon dials. One stream says that it is there; each session has a stream of its own
// in the same connection, whose flow control is the session's. When a server goes away, the
// daemon comes back after a random time, and commands wait for their holders: package supervise
// runs them. Connections to ports end.
package attach

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"connectrpc.com/connect"

	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/contract/proto/forewarm/v1/forewarmv1connect"
	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/supervise"
	"github.com/forewarm/forewarm/node/work"
)

const (
	signEvery   = 10 * time.Second // a sign of life goes
	signWithin  = 30 * time.Second // one comes, or the stream is given up
	firstRetry  = 3 * time.Second  // full jitter up to this after the first failure, then twice as much
	lastRetry   = time.Minute
	joinsWithin = time.Second
	// closeWithin is how long the server may take to read the end of a session.
	closeWithin = 30 * time.Second
)

// Config is what an attachment works with.
type Config struct {
	URL     string // of the control plane
	Version string
	BootID  string
	Epoch   int64             // when the daemon began, in milliseconds since the machine booted
	Key     func() obs.Secret // the node's key as it is now; empty: it has not joined
	HTTP    connect.HTTPClient
	Holds   *hold.Keeper
	// Supervisors run the commands of sessions. Of Earlier daemons, these go on.
	Supervisors *supervise.Supervisors
	Earlier     []*supervise.Watch
	Runner      work.Runner
	Hurry       func() // the server has something to tell in the answer to a report
	Random      *rand.Rand
	Log         *slog.Logger
	SignEvery   time.Duration // 0: ten seconds; a stream is given up after three times as much
	Patience    time.Duration // of commands, with holders whose connection was cut; 0: session.Patience
}

// NewTransport returns a transport for streams to a control plane: HTTP/2, with TLS or, to an
// address that begins with http:, without.
func NewTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, Protocols: new(http.Protocols),
		DialContext: (&net.Dialer{Timeout: signEvery}).DialContext,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: session.Window, SendPingTimeout: signWithin,
			PingTimeout: signEvery}, TLSHandshakeTimeout: signEvery}
	t.Protocols.SetHTTP2(true)
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

// Attachment is a daemon's.
type Attachment struct {
	Config
	api    forewarmv1connect.NodeServiceClient
	places places
	open   sync.WaitGroup
	ended  chan struct{} // closed once the daemon ends
}

// New returns an attachment that has not begun.
func New(cfg Config) (*Attachment, error) {
	if _, err := url.ParseRequestURI(cfg.URL); err != nil {
		return nil, err
	}
	cfg.SignEvery = cmp.Or(cfg.SignEvery, signEvery)
	cfg.Patience = cmp.Or(cfg.Patience, session.Patience)
	return &Attachment{Config: cfg, api: forewarmv1connect.NewNodeServiceClient(cfg.HTTP, cfg.URL),
		ended: make(chan struct{})}, nil
}

// Run attaches, again and again, until the context ends, and then ends the connections to ports. Commands go on,
// and wait for their holders, as they were told to. It is called once.
func (a *Attachment) Run(ctx context.Context) {
	defer a.open.Wait()
	defer close(a.ended)
	for _, w := range a.Earlier {
		a.keepPlace(w, a.places.take(w.AllocationID))
	}
	failures, told := 0, false
	for ctx.Err() == nil {
		attached, err := a.attach(ctx)
		if ctx.Err() != nil {
			return
		}
		if attached {
			failures, told = 0, false
		}
		wait := httpx.Backoff(failures, firstRetry, lastRetry, a.Random)
		if errors.Is(err, errNotJoined) { // it is about to
			wait = joinsWithin
		} else {
			failures++
		}
		if !told && !errors.Is(err, errNotJoined) { // once an outage
			a.Log.WarnContext(ctx, "sessions cannot be opened here: the stream to the control plane is down", "error",
				httpx.DescribeFailure(err, "the control plane"))
			told = true
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

var errNotJoined = errors.New("the daemon has not joined yet")

// attach keeps one stream until it breaks, and reports whether it ever stood.
func (a *Attachment) attach(parent context.Context) (attached bool, err error) {
	key := a.Key()
	if key.IsZero() {
		return false, errNotJoined
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	stream := a.api.Attach(ctx)
	defer func() { _ = stream.CloseResponse() }()
	defer endWith(ctx, stream)()
	stream.RequestHeader().Set("Authorization", "Bearer "+key.Reveal())
	if err := stream.Send(a.sign()); err != nil {
		_, err = stream.Receive() // it has the reason
		return false, err
	}
	var sender sync.WaitGroup
	defer sender.Wait()
	defer cancel(nil)
	sender.Go(func() { a.keepSigning(ctx, stream) })
	silence := time.AfterFunc(3*a.SignEvery, func() { cancel(errSilent) })
	defer silence.Stop()
	for {
		got, err := stream.Receive()
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
				err = cause
			}
			return attached, err
		}
		if silence.Reset(3 * a.SignEvery); !attached {
			attached = true
			a.Log.InfoContext(ctx, "attached: sessions can be opened here", "isolation", a.Holds.Isolation())
			a.Hurry() // what it had to tell before, it could not ask for
		}
		if got.GetReport() {
			a.Hurry()
		}
		if o := got.GetOpen(); o != nil {
			a.open.Go(func() { a.serve(parent, o) })
		}
	}
}

// endWith ends a stream with its context. Net/http notices that the context has ended only once
// it has something to send.
func endWith(ctx context.Context, stream interface{ CloseRequest() error }) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = stream.CloseRequest() })
}

var errSilent = errors.New("the server is silent")

func (a *Attachment) sign() *forewarmv1.AttachRequest {
	return &forewarmv1.AttachRequest{BootId: a.BootID, Epoch: a.Epoch, Version: a.Version, Isolation: a.Holds.Isolation()}
}

func (a *Attachment) keepSigning(ctx context.Context,
	stream *connect.BidiStreamForClient[forewarmv1.AttachRequest, forewarmv1.AttachResponse]) {
	tick := time.NewTicker(a.SignEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if stream.Send(a.sign()) != nil {
				return // its receiver has the reason
			}
		}
	}
}
