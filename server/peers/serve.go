package peers

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// Bounds of what one other server may have at work here.
const (
	maxCalls     = 4096
	maxCallBytes = 32 << 20
	workWithin   = 15 * time.Second // as long as a request may take
	finishWithin = 10 * time.Second // of calls that are at work when this server ends
)

// servePeer answers one server, until it ends or this one does.
func (g *Group) servePeer(ctx context.Context, conn *tls.Conn) {
	s := &serving{group: g, out: newOutbox(), over: make(chan struct{}), calls: map[uint64]work{}, known: actors{}}
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
	s.running.Wait()
	close(s.over)
	<-written
	_ = s.out.writeWaiting(conn)
}

// serving is one connection of another server.
type serving struct {
	group   *Group
	out     *outbox
	over    chan struct{}
	running sync.WaitGroup
	known   actors

	mu    sync.Mutex
	calls map[uint64]work // by number
	bytes int             // of all of them
}

// work is a call at work.
type work struct {
	cancel context.CancelFunc
	bytes  int
}

// leave tells the other side to send no more, and ends the reading when what it sent
// has had time to be done.
func (s *serving) leave(conn net.Conn) {
	s.out.addFrame(leaving, 0, nil)
	_ = conn.SetReadDeadline(time.Now().Add(finishWithin)) //nolint:forbidigo // a socket's deadline is the machine's
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
			s.endCall(f.number)
		case call:
			if !s.beginCall(ctx, f) {
				s.group.cfg.Logger.WarnContext(ctx, "another server asked what cannot be read, or too much at once")
				return
			}
		default:
			return
		}
	}
}

// beginCall begins one call; false: it could not be read, its number is at work, or
// too much is.
func (s *serving) beginCall(ctx context.Context, f frame) bool {
	c, actor, err := parseCall(f.content)
	if err == nil {
		c.Actor, err = s.known.parseActor(actor)
	}
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, workWithin)
	if !s.addCall(f.number, work{cancel: cancel, bytes: len(f.content)}) {
		cancel()
		return false
	}
	number := f.number
	s.running.Go(func() {
		p := s.group.answer(ctx, &c)
		s.endCall(number)
		s.out.addFrame(reply, number, p.appendTo)
	})
	return true
}

func (s *serving) addCall(number uint64, w work) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, at := s.calls[number]; at || len(s.calls) >= maxCalls || s.bytes+w.bytes > maxCallBytes {
		return false
	}
	s.calls[number] = w
	s.bytes += w.bytes
	return true
}

// endCall has a call end that is still at work.
func (s *serving) endCall(number uint64) {
	s.mu.Lock()
	w, ok := s.calls[number]
	delete(s.calls, number)
	s.bytes -= w.bytes
	s.mu.Unlock()
	if ok {
		w.cancel()
	}
}
