package jobs

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/clock"
)

// The output of an attempt that the daemon has not taken away has so many bytes at most.
const (
	mostSegment  = 4 << 20
	mostSegments = 16
)

// output keeps what a command writes in files, which the daemon takes away. It never holds the command
// up: what has no room is dropped, and a line in its place says how much that was.
type output struct {
	folder folder
	clock  clock.Clock

	mu      sync.Mutex
	file    *os.File // nil: the next record begins one
	size    int64    // of the file
	total   int64    // bytes of output that were kept
	dropped int64    // bytes, since something was kept
	record  []byte   // the last one, whose memory is used again
	failure error    // the last one in keeping something
}

// Send implements work.Stream.
func (o *output) Send(c session.Channel, data []byte) error {
	stream := map[session.Channel]byte{session.Stdout: streamOut, session.Stderr: streamErr}[c]
	if stream == 0 || len(data) == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.hasRoom(len(data)) || !o.tellDropped() || !o.keep(stream, data) {
		o.dropped += int64(len(data))
	}
	return nil
}

// hasRoom reports whether so many bytes can be kept, and ends a file that is full. What was dropped is
// followed by more only once there is room for a lot of it.
func (o *output) hasRoom(n int) bool {
	if o.file != nil && o.dropped == 0 && o.size+int64(n)+headerSize <= mostSegment {
		return true
	}
	all, err := o.folder.segments()
	if o.note(err); err != nil || len(all) >= mostSegments {
		return false
	}
	o.endFile()
	return true
}

// tellDropped writes down how much was dropped, if something was.
func (o *output) tellDropped() bool {
	if o.dropped == 0 {
		return true
	}
	text := fmt.Sprintf("[forewarm: %d bytes of output were dropped here: its node keeps %d MiB that could not be sent]\n",
		o.dropped, mostSegment*mostSegments>>20)
	if !o.keep(streamErr, []byte(text)) {
		return false
	}
	o.dropped = 0
	return true
}

// keep writes a record, all of it or nothing.
func (o *output) keep(stream byte, data []byte) bool {
	if o.file == nil {
		f, err := os.OpenFile(o.folder.segment(o.total), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if o.note(err); err != nil {
			return false
		}
		o.file, o.size = f, 0
	}
	o.record = appendRecord(o.record[:0], stream, o.clock.Now(), data)
	if _, err := o.file.Write(o.record); err != nil {
		o.note(err)
		o.note(o.file.Truncate(o.size))
		o.endFile()
		return false
	}
	o.size, o.total = o.size+int64(len(o.record)), o.total+int64(len(data))
	return true
}

func (o *output) note(err error) {
	if err != nil {
		o.failure = err
	}
}

func (o *output) endFile() {
	if o.file != nil {
		_ = o.file.Close()
		o.file = nil
	}
}

// close makes what was kept durable. Of what was dropped at the end it says so, beyond all bounds.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tellDropped()
	o.endFile()
	all, err := o.folder.segments()
	for _, base := range all {
		err = errors.Join(err, syncFile(o.folder.segment(base)))
	}
	return errors.Join(err, o.failure)
}

// syncFile makes a file durable, unless it was taken away.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // in the daemon's own folder
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
