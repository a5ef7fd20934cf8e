package peers

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// Bounds of what others may ask of this server.
const (
	maxConnections  = 64
	maxCalls        = 4096 // of one connection, at a time
	handshakeWithin = 3 * time.Second
	finishWithin    = 10 * time.Second // of calls that are at work when the server ends
)

// serveOthers answers other servers until the context ends.
func (g *Group) serveOthers(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = g.cfg.Listener.Close() })
	defer stop()
	open := make(chan struct{}, maxConnections)
	var wait sync.WaitGroup
	defer wait.Wait()
	for {
		conn, err := g.cfg.Listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // no file descriptors: there will be some again
			g.cfg.Logger.WarnContext(ctx, "accepting another server failed", "error", err)
			waitFor(ctx, pingEvery)
			continue
		}
		select {
		case open <- struct{}{}:
			wait.Go(func() {
				defer func() { <-open }()
				g.servePeer(ctx, tls.Server(conn, g.security))
			})
		default:
			_ = conn.Close()
		}
	}
}

// waitFor waits for a time, or until the context ends.
func waitFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// servePeer answers one server.
func (g *Group) servePeer(ctx context.Context, conn *tls.Conn) {
	defer conn.Close()
	early, cancel := context.WithTimeout(ctx, handshakeWithin)
	err := conn.HandshakeContext(early)
	cancel()
	if err != nil {
		g.cfg.Logger.WarnContext(ctx, "refused who is not another server of this installation and version",
			"peer", conn.RemoteAddr().String(), "error", err)
		return
	}
	s := &serving{group: g, out: newOutbox(), over: make(chan struct{}), slots: make(chan struct{}, maxCalls),
		known: actors{}, calls: map[uint64]context.CancelFunc{}}
	g.serving.Add(1)
	defer g.serving.Add(-1)
	s.out.addFrame(hello, 0, func(b []byte) []byte { return append(b, g.cfg.ID...) })
	written := make(chan struct{})
	go func() {
		defer close(written)
		if s.out.writeFrames(conn, s.over) != nil {
			_ = conn.Close() // which ends the reading too
		}
	}()
	stop := context.AfterFunc(ctx, func() { s.leave(conn) })
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.readCalls(working, bufio.NewReaderSize(conn, readBufSize))
	stop()
	cancel()
	s.work.Wait()
	close(s.over)
	<-written
	_ = s.out.writeWaiting(conn)
}

// serving is one connection of another server.
type serving struct {
	group *Group
	out   *outbox
	over  chan struct{}
	slots chan struct{}
	work  sync.WaitGroup
	known actors

	mu    sync.Mutex
	calls map[uint64]context.CancelFunc // at work
}

// leave tells the other side to send no more, and ends the reading when what it sent
// has had time to be done.
func (s *serving) leave(conn net.Conn) {
	s.out.addFrame(leaving, 0, nil)
	_ = conn.SetReadDeadline(s.group.cfg.Clock.Now().Add(finishWithin))
}

// readCalls begins what the other side asks, until it says no more.
func (s *serving) readCalls(ctx context.Context, r *bufio.Reader) {
	var buf []byte
	for {
		f, next, err := readFrame(r, buf)
		if err != nil {
			return
		}
		buf = next
		switch f.kind {
		case ping:
			s.out.addFrame(pong, 0, nil)
		case withdraw:
			s.takeCall(f.number)()
		case call:
			if !s.beginCall(ctx, f) {
				return
			}
		default:
			return
		}
	}
}

// beginCall begins one call; false: it could not be read.
func (s *serving) beginCall(ctx context.Context, f frame) bool {
	c, actor, err := parseCall(f.content)
	if err == nil {
		c.Actor, err = s.known.parseActor(actor)
	}
	if err != nil {
		s.group.cfg.Logger.WarnContext(ctx, "another server asked what cannot be read", "error", err)
		return false
	}
	s.slots <- struct{}{}
	number := f.number
	ctx, cancel := context.WithCancel(ctx)
	s.addCall(number, cancel)
	s.work.Go(func() {
		defer func() { <-s.slots }()
		p := s.group.answer(ctx, &c)
		s.takeCall(number)()
		s.out.addFrame(reply, number, p.appendTo)
	})
	return true
}

func (s *serving) addCall(number uint64, cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[number] = cancel
}

// takeCall returns what withdraws a call, which is not at work any more.
func (s *serving) takeCall(number uint64) context.CancelFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	cancel, ok := s.calls[number]
	if !ok {
		return func() {}
	}
	delete(s.calls, number)
	return cancel
}
