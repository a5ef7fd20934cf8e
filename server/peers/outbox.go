package peers

import (
	"fmt"
	"io"
	"sync"
)

// outbox gathers frames while others are being written, and writes them together:
// one record of TLS and one system call for as many as came meanwhile.
type outbox struct {
	mu      sync.Mutex
	waiting []byte
	spare   []byte        // what was written last, to be filled again
	filled  chan struct{} // holds something when waiting does
}

func newOutbox() *outbox { return &outbox{filled: make(chan struct{}, 1)} }

// maxSpare bounds the memory that an idle connection keeps.
const maxSpare = 256 << 10

// addFrame adds a frame, whose content write appends.
func (o *outbox) addFrame(k kind, number uint64, write func([]byte) []byte) {
	o.mu.Lock()
	o.waiting = appendFrame(o.waiting, k, number, write)
	o.mu.Unlock()
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

// writeFrames writes what is added until over is closed, or writing fails.
func (o *outbox) writeFrames(w io.Writer, over <-chan struct{}) error {
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
func (o *outbox) writeWaiting(w io.Writer) error {
	o.mu.Lock()
	out := o.waiting
	o.waiting, o.spare = o.spare, nil
	o.mu.Unlock()
	if len(out) == 0 {
		return nil
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
