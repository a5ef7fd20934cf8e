package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	wire "github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/contract/session/tether"
)

const (
	// tellsWithin is how long a node may take to acknowledge anything. One that does not is older.
	tellsWithin = 15 * time.Second
	// lastWordWithin is how long it may take to say that the command is to be hung up, or how it is known to
	// have ended.
	lastWordWithin = time.Second

	firstRetry, lastRetry = 100 * time.Millisecond, 2 * time.Second
)

// command is a session with a command, over one connection after another.
type command struct {
	*tether.Tether
	Command
	server  Server
	of      string          // the allocation
	holder  context.Context //nolint:containedctx // where it ends, the command is hung up
	abandon context.CancelFunc
	alive   context.Context //nolint:containedctx // of the session, which this is
	end     context.CancelFunc
	lost    chan error
	stayed  chan struct{} // closed once no connection is kept any more
}

// begin has a command begin.
func (s Server) begin(ctx context.Context, allocationID string, c Command) (*command, error) {
	c.ResumeID = wire.NewResumeID()
	text := c.Encode()
	if len(text) > wire.MostData {
		return nil, fmt.Errorf("the command and its environment have %d bytes in JSON, and may have %d", len(text),
			wire.MostData)
	}
	w := &command{Command: c, server: s, of: allocationID, lost: make(chan error, 1),
		stayed: make(chan struct{})}
	w.holder, w.abandon = context.WithCancel(ctx)
	w.alive, w.end = context.WithCancel(context.WithoutCancel(ctx))
	w.Tether = tether.New(tether.Config{Keeps: true, Lost: func(cause error) {
		select {
		case w.lost <- cause:
		case <-w.alive.Done():
		}
	}})
	l, err := w.dial(ctx, wire.Begin, text)
	if err == nil {
		err = w.Attach(l, 0)
	}
	if err != nil {
		w.abandon()
		w.end()
		return nil, err
	}
	go w.stay(l)
	return w, nil
}

// dial opens a connection, and says something first on it.
func (w *command) dial(ctx context.Context, c wire.Channel, data []byte) (*line, error) {
	conn, err := w.server.dial(ctx, url.Values{"node": {strconv.Itoa(w.Node)}}, "allocations", w.of, "exec")
	if err != nil {
		return nil, err
	}
	l := &line{conn: conn, alive: w.alive}
	if err := l.Send(c, data); err != nil {
		l.Close()
		return nil, fmt.Errorf("%w: %w", ErrCut, err)
	}
	return l, nil
}

// stay keeps a connection to the command, for as long as it can be come back to and its holder wants.
func (w *command) stay(now *line) {
	defer close(w.stayed)
	old := time.NewTimer(tellsWithin)
	defer old.Stop()
	for {
		select {
		case <-w.alive.Done():
			return
		case <-w.holder.Done():
			now.hangUp()
			w.End(w.holder.Err())
			return
		case <-old.C:
			if !w.Acknowledged() {
				w.Forgo()
			}
		case cause := <-w.lost:
			next, err := w.comeBack(cause)
			if err != nil {
				w.End(err)
				return
			}
			now = next
		}
	}
}

// comeBack connects to the command anew, and tries that again for as long as it waits.
func (w *command) comeBack(cause error) (*line, error) {
	if !w.Acknowledged() {
		return nil, cutBy(cause)
	}
	if w.Interrupted != nil {
		w.Interrupted(cause)
	}
	within, cancel := context.WithTimeout(w.holder, cmp.Or(w.server.Patience, wire.Patience))
	defer cancel()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		l, err := w.resume(within)
		switch {
		case err == nil:
			return l, nil
		case w.holder.Err() != nil:
			return nil, w.holder.Err()
		case isFinal(err):
			return nil, err
		case within.Err() != nil:
			return nil, cutBy(cause)
		}
		timer := time.NewTimer(time.Duration(rand.Int64N(int64(wait)))) //nolint:gosec // it needs no secrecy
		select {
		case <-within.Done():
		case <-w.alive.Done():
			return nil, ErrCut
		case <-timer.C:
		}
		timer.Stop()
	}
}

// resume connects to the command, which says first what it has.
func (w *command) resume(ctx context.Context) (*line, error) {
	l, err := w.dial(ctx, wire.Resume, wire.Resumption{ResumeID: w.ResumeID, Taken: w.Taken()}.Encode())
	if err != nil {
		return nil, err
	}
	for err == nil {
		var c wire.Channel
		var data []byte
		c, data, err = l.Receive()
		switch {
		case err != nil || len(data) == 0: // it only shows that the server is there
		case c == wire.Result:
			end, wrong := wire.ParseEnd(data)
			err = errors.Join(wrong, &EndError{end})
		case c == wire.Ack:
			var has uint64
			if has, err = wire.ParseCount(data); err != nil {
				break
			}
			if w.Resumed != nil { // before what the command said meanwhile
				w.Resumed()
			}
			if err = w.Attach(l, has); err == nil {
				return l, nil
			}
		default:
			err = wire.ErrMessage
		}
	}
	l.Close()
	return nil, err
}

// cutBy is ErrCut, or what the node said when it was lost.
func cutBy(cause error) error {
	if lost, ok := errors.AsType[*EndError](cause); ok {
		return lost
	}
	return fmt.Errorf("%w: %w", ErrCut, cause)
}

// isFinal reports whether what was refused will be refused again.
func isFinal(err error) bool {
	if end, ok := errors.AsType[*EndError](err); ok {
		return end.Code != wire.NodeLost && end.Code != wire.Refused
	}
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		return errors.Is(err, wire.ErrMessage)
	}
	status := refused.Problem.Status
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests &&
		status != http.StatusRequestTimeout && refused.Problem.Code != contract.CodeNodeNotAttached
}

// receive writes what a command says, until it has ended.
func (w *command) receive(stdout, stderr io.Writer) (wire.End, error) {
	for {
		c, data, err := w.Receive()
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
			end, err := wire.ParseEnd(data)
			if err == nil && end.Code != "" {
				err = &EndError{end}
			}
			return end, err
		default:
		}
		if to != nil {
			if _, err := to.Write(data); err != nil {
				return wire.End{}, fmt.Errorf("writing what the command says: %w", err)
			}
		}
	}
}

// leave ends the session. One that has no result yet is hung up.
func (w *command) leave() {
	late := time.AfterFunc(lastWordWithin, w.end)
	defer late.Stop()
	if w.HasResult() {
		w.AwaitLoss()
	} else {
		w.abandon()
		<-w.stayed
	}
	w.End(errOver)
	w.end()
	w.abandon()
}

var errOver = errors.New("the session is over")

// pump sends what a reader has, to its end.
func (w *command) pump(from io.Reader) {
	buf := make([]byte, wire.MostData)
	for {
		n, err := from.Read(buf)
		if n > 0 && w.Send(wire.Stdin, buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = w.Send(wire.Close, []byte{byte(wire.Stdin)})
			return
		}
	}
}

// forward sends sizes and signals.
func (w *command) forward(sizes <-chan wire.Size, signals <-chan string) {
	for {
		var err error
		select {
		case <-w.alive.Done():
			return
		case size := <-sizes:
			err = w.Send(wire.Resize, size.Encode())
		case name := <-signals:
			err = w.Send(wire.Signal, []byte(name))
		}
		if err != nil {
			return
		}
	}
}

// line is a connection of a session.
type line struct {
	conn  *websocket.Conn
	alive context.Context //nolint:containedctx // of the session
}

// Send implements tether.Line.
func (l *line) Send(c wire.Channel, data []byte) error {
	return l.conn.Write(l.alive, websocket.MessageBinary, wire.AppendMessage(nil, c, data))
}

// Receive implements tether.Line. That the node was lost is no message of the node's.
func (l *line) Receive() (wire.Channel, []byte, error) {
	_, message, err := l.conn.Read(l.alive)
	if err != nil {
		return 0, nil, err
	}
	c, data, err := wire.ParseMessage(message)
	if err == nil && c == wire.Result {
		if end, wrong := wire.ParseEnd(data); wrong == nil && end.Code == wire.NodeLost {
			err = &EndError{end}
		}
	}
	return c, data, err
}

// Close implements tether.Line.
func (l *line) Close() { _ = l.conn.CloseNow() }

// hangUp has the command hung up.
func (l *line) hangUp() {
	ctx, cancel := context.WithTimeout(l.alive, lastWordWithin)
	defer cancel()
	if l.conn.Write(ctx, websocket.MessageBinary, wire.AppendMessage(nil, wire.HangUp, nil)) == nil {
		_ = l.conn.Close(websocket.StatusNormalClosure, "")
	}
}
