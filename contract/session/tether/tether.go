// Package tether carries the messages of a session between its two ends, over one connection after another: nothing
// is lost, and nothing comes twice, when one breaks.
//
// Each end keeps what it has sent until the other says that it has taken it, and sends on the next connection what
// the other has not. What was kept bounds what is on its way: whoever does not take messages holds up whoever sends.
package tether

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/contract/session"
)

const (
	// proveEvery is how often something is sent: while the other end does not take what comes, only what cannot be
	// sent shows that a connection is over.
	proveEvery = 10 * time.Second
	// ackAfter is how many bytes are taken until that is said.
	ackAfter = session.MostKept / 16
)

// Line is a connection. Send and Receive may be called at the same time.
type Line interface {
	Send(c session.Channel, data []byte) error
	// Receive returns the next message, whose data is valid until the next call.
	Receive() (session.Channel, []byte, error)
	Close()
}

// Config is what a tether works with.
type Config struct {
	// Keeps says that the other end acknowledges. Otherwise what was written is forgotten.
	Keeps bool
	// Lost is called when a line is lost that no other has replaced.
	Lost func(cause error)
	// HungUp is called when the other end does not come back.
	HungUp func()
}

// Tether is one end of a session. It is safe for concurrent use.
type Tether struct {
	Config

	mu      sync.Mutex
	changed *sync.Cond
	line    Line  // nil: there is none
	ended   error // nothing is carried any more
	sent    session.Backlog
	written uint64   // messages that were written to the line, or need not be
	came    [][]byte // and not taken; the other end sends them again on another line
	waiting int      // bytes of these
	taken   uint64
	unsaid  int  // bytes of those taken since that was last said
	ack     bool // it is to be said now
	prove   bool
	proof   *time.Timer // runs while there is a line
	writing bool
	acked   bool // the other end has acknowledged something
	result  bool // it came, and nothing follows it
}

// errReplaced says that a line has been replaced, or the tether ended.
var errReplaced = errors.New("the session goes on elsewhere")

var errOver = errors.New("the session has come to its result")

// New returns an end of a session, which has no line yet.
func New(cfg Config) *Tether {
	t := &Tether{Config: cfg}
	t.changed = sync.NewCond(&t.mu)
	t.proof = time.AfterFunc(proveEvery, t.proveLine)
	return t
}

// Attach has a line take the place of the one before. The other end has taken so many messages.
func (t *Tether) Attach(line Line, taken uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return t.ended
	}
	if err := t.sent.Take(taken); err != nil {
		return err
	}
	if t.line != nil {
		t.line.Close()
	}
	t.line, t.written, t.came, t.waiting, t.prove = line, taken, nil, 0, false
	t.ack, t.writing = t.Keeps, false
	t.changed.Broadcast()
	go t.read(line)
	go t.write(line)
	t.proof.Reset(proveEvery)
	return nil
}

// End has Send and Receive return an error, and closes the line.
func (t *Tether) End(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	t.ended = err
	t.proof.Stop()
	if t.line != nil {
		t.line.Close()
	}
	t.changed.Broadcast()
}

// Forgo keeps nothing of what was written from now on: the other end does not acknowledge.
func (t *Tether) Forgo() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Keeps = false
	_ = t.sent.Take(t.written) // it was sent
	t.changed.Broadcast()
}

// Attached reports whether there is a line.
func (t *Tether) Attached() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.line != nil
}

// Acknowledged reports whether the other end has said what it has taken: it can be come back to.
func (t *Tether) Acknowledged() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acked
}

// Taken is how many messages of the other end were taken.
func (t *Tether) Taken() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

// Send sends a message that is numbered. It blocks while the other end has much to take.
func (t *Tether) Send(c session.Channel, data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.ended == nil && t.sent.Full() {
		t.changed.Wait()
	}
	if t.ended != nil {
		return t.ended
	}
	t.sent.Add(c, data)
	t.changed.Broadcast()
	return nil
}

// Receive returns the next numbered message of the other end.
func (t *Tether) Receive() (session.Channel, []byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.ended == nil && len(t.came) == 0 {
		t.changed.Wait()
	}
	if t.ended != nil {
		return 0, nil, t.ended
	}
	message := t.came[0]
	t.came = t.came[1:]
	t.waiting -= len(message)
	t.taken++
	if t.unsaid += len(message); t.unsaid >= ackAfter {
		t.ack = t.Keeps
	}
	t.changed.Broadcast()
	return session.Channel(message[0]), message[1:], nil
}

// Flush waits until the other end has taken all that was sent, or the tether ends.
func (t *Tether) Flush() { t.awaitThat(func() bool { return t.sent.Taken() == t.sent.Sent() }) }

// HasResult reports whether the result of the session has come, after which a line that is lost is not missed.
func (t *Tether) HasResult() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.result
}

// AwaitLoss waits until there is no line.
func (t *Tether) AwaitLoss() { t.awaitThat(func() bool { return t.line == nil }) }

func (t *Tether) awaitThat(done func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.ended == nil && !done() {
		t.changed.Wait()
	}
}

// lose notes that a line is over.
func (t *Tether) lose(line Line, cause error) {
	line.Close()
	t.mu.Lock()
	if t.line != line {
		t.mu.Unlock()
		return
	}
	if t.line = nil; !t.result { // the other end is told what was taken, and sends the rest again
		t.came, t.waiting = nil, 0
	}
	missed := t.ended == nil && !t.result
	t.changed.Broadcast()
	t.mu.Unlock()
	if missed {
		t.Lost(cause)
	}
}

// is reports whether a line is the one that counts.
func (t *Tether) is(line Line) bool { return t.line == line && t.ended == nil }

// read takes what comes on a line.
func (t *Tether) read(line Line) {
	for {
		c, data, err := line.Receive()
		switch {
		case err != nil:
		case c == session.HangUp:
			if t.HungUp != nil {
				t.HungUp()
			}
		case c == session.Ack:
			err = t.noteTaken(line, data)
		case session.IsNumbered(c, data):
			err = t.keep(line, c, data)
		}
		if err != nil {
			t.lose(line, err)
			return
		}
	}
}

func (t *Tether) noteTaken(line Line, data []byte) error {
	count, err := session.ParseCount(data)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.is(line) {
		return errReplaced
	}
	if !t.Keeps {
		return nil
	}
	t.acked = true
	if count > t.written {
		return session.ErrMessage
	}
	t.changed.Broadcast()
	return t.sent.Take(count)
}

// keep keeps a message until it is taken. It waits where the other end sends more than it may.
func (t *Tether) keep(line Line, c session.Channel, data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.is(line) && t.waiting >= 2*session.MostKept {
		t.changed.Wait()
	}
	if !t.is(line) {
		return errReplaced
	}
	t.came = append(t.came, session.AppendMessage(nil, c, data))
	t.waiting += len(data) + 1
	t.result = t.result || c == session.Result
	t.ack = t.ack || t.result && t.Keeps
	t.changed.Broadcast()
	if !t.result {
		return nil
	}
	for t.is(line) && (t.ack || t.writing) { // the other end is to know before the line is closed
		t.changed.Wait()
	}
	return errOver
}

// outgoing is what is to be written to a line.
type outgoing struct {
	messages [][]byte
	ack      []byte // nil: none is due
	prove    bool
}

// write writes to a line what there is.
func (t *Tether) write(line Line) {
	for {
		out, err := t.await(line)
		if err == nil && out.ack != nil {
			err = line.Send(session.Ack, out.ack)
		}
		if err == nil && out.prove {
			err = line.Send(session.Stdout, nil)
		}
		for _, m := range out.messages {
			if err == nil {
				err = line.Send(session.Channel(m[0]), m[1:])
			}
		}
		if err != nil {
			t.lose(line, err)
			return
		}
		t.noteWritten(line)
	}
}

// await waits until there is something to write to a line. What is returned counts as written: an acknowledgement of it
// may come before the call that writes it has returned.
func (t *Tether) await(line Line) (out outgoing, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.is(line) && !t.ack && !t.prove && t.sent.Sent() == t.written {
		t.changed.Wait()
	}
	if !t.is(line) {
		return out, errReplaced
	}
	kept, err := t.sent.After(t.written)
	if err != nil {
		return out, err
	}
	out = outgoing{messages: slices.Clone(kept), prove: t.prove} // what is acknowledged meanwhile is forgotten
	if t.ack {
		has := t.taken
		if t.result { // all is here
			has += uint64(len(t.came))
		}
		out.ack, t.unsaid = session.EncodeCount(has), 0
	}
	t.ack, t.prove, t.writing, t.written = false, false, true, t.sent.Sent()
	return out, nil
}

func (t *Tether) noteWritten(line Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line != line {
		return
	}
	t.writing = false
	if !t.Keeps {
		_ = t.sent.Take(t.written) // it was sent
	}
	t.changed.Broadcast()
}

// proveLine has something written to the line now and then, and what was taken said.
func (t *Tether) proveLine() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line == nil || t.ended != nil {
		return
	}
	t.prove, t.ack = true, t.ack || t.Keeps && t.unsaid > 0
	t.proof.Reset(proveEvery)
	t.changed.Broadcast()
}
