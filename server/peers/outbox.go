package peers

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// outbox gathers frames while others are being written, and writes them together:
// one record of TLS and one system call for as many as came meanwhile.
type outbox struct {
	mu      sync.Mutex
	waiting []byte
	spare   []byte        // what was written last, to be filled again
	filled  chan struct{} // holds something when waiting does
	full    bool          // frames were left out
}

func newOutbox() *outbox { return &outbox{filled: make(chan struct{}, 1)} }

// Bounds of an outbox, in bytes, and of one writing: whoever does not read is not
// waited for.
const (
	maxSpare    = 256 << 10 // kept by an idle connection
	maxWaiting  = 32 << 20
	writeWithin = 5 * time.Second
)

var errNotRead = errors.New("the other side does not read what it is sent")

// addFrame adds a frame, whose content write appends.
func (o *outbox) addFrame(k kind, number uint64, write func([]byte) []byte) {
	o.mu.Lock()
	if len(o.waiting) > maxWaiting {
		o.full = true
	} else {
		o.waiting = appendFrame(o.waiting, k, number, write)
	}
	o.mu.Unlock()
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

// writeFrames writes what is added until over is closed, or writing fails.
func (o *outbox) writeFrames(w net.Conn, over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		case <-o.filled:
		}
		if err := o.writeWaiting(w); err != nil {
			return err
		}
	}
}

// writeWaiting writes what waits now.
func (o *outbox) writeWaiting(w net.Conn) error {
	o.mu.Lock()
	out := o.waiting
	o.waiting, o.spare = o.spare, nil
	full := o.full
	o.mu.Unlock()
	if full {
		return errNotRead
	}
	if len(out) == 0 {
		return nil
	}
	deadline := time.Now().Add(writeWithin) //nolint:forbidigo // a socket's deadline is the machine's
	if err := w.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("writing to another server: %w", err)
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("writing to another server: %w", err)
	}
	if cap(out) <= maxSpare {
		o.mu.Lock()
		o.spare = out[:0]
		o.mu.Unlock()
	}
	return nil
}
