package peers

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// Bounds of who may connect.
const (
	maxConnections  = 64 // of those who proved to be servers
	maxStrangers    = 64 // of the others: a new one takes the place of the oldest
	handshakeWithin = 3 * time.Second
	tellEvery       = time.Minute // strangers reach the log
)

// serveOthers answers other servers until the context ends.
func (g *Group) serveOthers(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = g.cfg.Listener.Close() })
	defer stop()
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
		leave := g.strangers.enter(conn)
		wait.Go(func() { g.admit(ctx, tls.Server(conn, g.security), leave) })
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

// admit serves whoever proves to be another server. leave is called when that is
// settled.
func (g *Group) admit(ctx context.Context, conn *tls.Conn, leave func()) {
	defer func() { _ = conn.Close() }()
	early, cancel := context.WithTimeout(ctx, handshakeWithin)
	err := conn.HandshakeContext(early)
	cancel()
	leave()
	if err != nil {
		g.tellStranger(ctx, conn, err)
		return
	}
	if g.carriesSession(conn) {
		if g.sessions.Add(1) <= maxSessions {
			g.serveSession(ctx, conn)
		}
		g.sessions.Add(-1)
		return
	}
	if g.serving.Add(1) <= maxConnections {
		g.servePeer(ctx, conn)
	}
	g.serving.Add(-1)
}

// tellStranger logs that somebody was refused, now and then. Nothing that a stranger
// sent is logged, not even in an error's text.
func (g *Group) tellStranger(ctx context.Context, conn net.Conn, err error) {
	reason := "no handshake"
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, errStranger):
		reason = errStranger.Error()
	case errors.Is(err, errVersion):
		reason = errVersion.Error()
	case errors.Is(err, context.DeadlineExceeded):
		reason = "no handshake in time"
	}
	if refused, due := g.strangers.countRefused(g.cfg.Clock.Now()); due {
		g.cfg.Logger.WarnContext(ctx, "refused who is not another server of this installation and version",
			"peer", conn.RemoteAddr().String(), "reason", reason, "times", refused)
	}
}

// strangers are connections of those who have not proved to be servers.
type strangers struct {
	mu      sync.Mutex
	open    list.List // of net.Conn, the oldest first
	refused int       // since the log was told
	told    time.Time
}

// enter counts a stranger's connection until leave is called. Beyond the bound, the
// oldest is closed: a server proves itself in milliseconds.
func (s *strangers) enter(conn net.Conn) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open.Len() >= maxStrangers {
		if oldest, ok := s.open.Remove(s.open.Front()).(net.Conn); ok {
			_ = oldest.Close()
		}
	}
	place := s.open.PushBack(conn)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open.Remove(place) // does nothing if it was closed
	}
}

// countRefused counts a refusal, and returns how many there were if the log is due.
func (s *strangers) countRefused(now time.Time) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
	if !s.told.IsZero() && now.Sub(s.told) < tellEvery {
		return 0, false
	}
	refused := s.refused
	s.refused, s.told = 0, now
	return refused, true
}
