package peers

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// Bounds of a connection to another server.
const (
	dialWithin  = 2 * time.Second
	pingEvery   = 500 * time.Millisecond
	maxSilent   = 3        // pings in a row without any frame: then it is given up
	readBufSize = 64 << 10 // bytes
	// replyWithin is less than a request may take: if the other side is there and does
	// not decide, there is time to decide here.
	replyWithin = 10 * time.Second
)

// link is a connection to the server that decides.
type link struct {
	to     ledger.Peer
	conn   net.Conn
	out    *outbox
	silent atomic.Int32 // pings since the last frame came

	mu      sync.Mutex
	calls   map[uint64]waiter
	bytes   int // of all of them
	last    uint64
	leaving bool // it takes no more calls

	over    chan struct{} // closed when the connection is
	closing sync.Once
	ended   func(*link) // is told that it takes no more calls, perhaps again and again
}

// waiter is who waits for a reply.
type waiter struct {
	reply chan Reply
	bytes int // of its call
}

// dialPeer connects to another server, and makes sure that it is that one.
func dialPeer(ctx context.Context, to ledger.Peer, security *tls.Config, ended func(*link)) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	dialer := tls.Dialer{Config: security}
	conn, err := dialer.DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, fmt.Errorf("connecting to another server at %s: %w", to.Address, err)
	}
	l := &link{to: to, conn: conn, out: newOutbox(), calls: map[uint64]waiter{}, over: make(chan struct{}),
		ended: ended}
	r := bufio.NewReaderSize(conn, readBufSize)
	if err := l.greet(ctx, r); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go func() { defer l.close(); _ = l.out.writeFrames(conn, l.over) }()
	go func() { defer l.close(); _ = l.readReplies(r) }()
	go l.watchSilence()
	return l, nil
}

// greet waits for the other side's first frame.
func (l *link) greet(ctx context.Context, r *bufio.Reader) error {
	deadline, _ := ctx.Deadline()
	if err := l.conn.SetReadDeadline(deadline); err != nil {
		return fmt.Errorf("greeting another server: %w", err)
	}
	f, _, err := readFrame(r, nil)
	if err != nil {
		return err
	}
	if f.kind != hello || string(f.content) != l.to.ID {
		return fmt.Errorf("another server than %s answers at %s", l.to.ID, l.to.Address)
	}
	if err := l.conn.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("greeting another server: %w", err)
	}
	return nil
}

// readReplies hands replies to those who wait for them, until the connection ends.
func (l *link) readReplies(r *bufio.Reader) error {
	var buf []byte
	for {
		f, next, err := readFrame(r, buf)
		if err != nil {
			return err
		}
		buf = next
		l.silent.Store(0)
		switch f.kind {
		case reply:
			p, err := parseReply(f.content)
			if err != nil {
				return err
			}
			if w, ok := l.takeCall(f.number); ok {
				w.reply <- p
			}
			l.closeIfDone()
		case leaving:
			l.retire()
		}
	}
}

// watchSilence asks again and again whether the other side is there, and gives it up
// when it says nothing: it may be paused, or out of reach.
func (l *link) watchSilence() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-tick.C:
		}
		if l.silent.Add(1) > maxSilent {
			l.close()
			return
		}
		l.out.addFrame(ping, 0, nil)
	}
}

// ask sends a call and waits for its reply, or withdraws it when the context ends.
func (l *link) ask(ctx context.Context, c *Call) (Reply, error) {
	actor, err := json.Marshal(c.Actor)
	if err != nil {
		return Reply{}, fmt.Errorf("encoding who asks: %w", err)
	}
	if len(actor) > maxActor || len(c.Body) > maxBody {
		return Reply{}, ErrNobody
	}
	w := waiter{reply: make(chan Reply, 1), bytes: len(actor) + len(c.Body)}
	number, ok := l.addCall(w)
	if !ok {
		return Reply{}, ErrNobody
	}
	l.out.addFrame(call, number, func(b []byte) []byte { return c.appendTo(b, actor) })
	late := time.NewTimer(replyWithin)
	defer late.Stop()
	select {
	case p := <-w.reply:
		return p.check()
	case <-l.over:
	case <-late.C:
		l.withdrawCall(number)
	case <-ctx.Done():
		l.withdrawCall(number)
	}
	select {
	case p := <-w.reply: // it came at the last moment
		return p.check()
	default:
		return Reply{}, ErrLost
	}
}

// check refuses a reply that says nothing: it was too long, or cannot be one.
func (p Reply) check() (Reply, error) {
	if p.Failed != (p.Status >= 400) || p.Status < 200 || p.Status >= 300 && p.Status < 400 || p.Status > 599 {
		return Reply{}, ErrLost
	}
	return p, nil
}

// addCall numbers a call that waits; false: no more are taken.
func (l *link) addCall(w waiter) (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving || len(l.calls) >= maxCalls || l.bytes+w.bytes > maxCallBytes/2 {
		return 0, false
	}
	l.last++
	l.calls[l.last] = w
	l.bytes += w.bytes
	return l.last, true
}

// takeCall returns who waits for the reply of a number, who then does not wait any
// more; false: nobody.
func (l *link) takeCall(number uint64) (waiter, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, ok := l.calls[number]
	delete(l.calls, number)
	l.bytes -= w.bytes
	return w, ok
}

// withdrawCall tells the other side that nobody waits for the reply of a number.
func (l *link) withdrawCall(number uint64) {
	if _, ok := l.takeCall(number); ok {
		l.out.addFrame(withdraw, number, nil)
	}
	l.closeIfDone()
}

// retire has the link take no more calls, and ends it when those that were sent are
// answered.
func (l *link) retire() {
	l.stopCalls()
	l.closeIfDone()
	l.ended(l)
}

// stopCalls has the link take no more calls.
func (l *link) stopCalls() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = true
}

// closeIfDone ends a link that takes no more calls and has answered all.
func (l *link) closeIfDone() {
	l.mu.Lock()
	done := l.leaving && len(l.calls) == 0
	l.mu.Unlock()
	if done {
		l.close()
	}
}

func (l *link) isLeaving() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaving
}

// close ends the connection. Whoever still waits gets ErrLost.
func (l *link) close() {
	l.stopCalls()
	l.closing.Do(func() {
		close(l.over)
		_ = l.conn.Close() // nothing can be said to the other side any more
	})
	l.ended(l)
}
