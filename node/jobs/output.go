package jobs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/contract/session"
	"github.com/forewarm/forewarm/internal/clock"
)

// The output of an attempt that the daemon has not taken away has so many bytes at most.
const (
	mostSegment  = 4 << 20
	mostSegments = 16
	// mostTail is how many bytes are kept in memory beside it: the newest of what has no room there.
	mostTail = 4 << 20
	// tryAfter is how long what is in memory waits for room, if nothing more is written.
	tryAfter = time.Second
)

// output keeps what a command writes in files, which the daemon takes away. It never holds the command
// up: of what has no room the newest is kept, as errors stand at the end. The rest is dropped, and a line in
// its place says how much that was.
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
	tail    []held   // what has had no room so far, the oldest first
	waits   int64    // bytes of output in it
	again   *time.Timer
}

// held is a record that waits for room.
type held struct {
	stream byte
	at     time.Time
	data   []byte
}

// Send implements work.Stream.
func (o *output) Send(c session.Channel, data []byte) error {
	stream := map[session.Channel]byte{session.Stdout: streamOut, session.Stderr: streamErr}[c]
	if stream == 0 || len(data) == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	if len(o.tail) == 0 && o.hasRoom(len(data)) && o.keep(stream, now, data) {
		return nil
	}
	o.hold(held{stream, now, slices.Clone(data)})
	o.release()
	return nil
}

// hasRoom reports whether so many bytes can be kept, and ends a file that is full. What had no room is
// followed by more only once there is room for a lot of it.
func (o *output) hasRoom(n int) bool {
	if o.file != nil && len(o.tail) == 0 && o.size+int64(n)+headerSize <= mostSegment {
		return true
	}
	all, err := o.folder.segments()
	if o.note(err); err != nil || len(all) >= mostSegments {
		return false
	}
	o.endFile()
	return true
}

// hold keeps a record in memory, and drops the oldest there if they are too many.
func (o *output) hold(h held) {
	o.tail, o.waits = append(o.tail, h), o.waits+int64(len(h.data))
	first := 0
	for ; o.waits > mostTail; first++ {
		n := int64(len(o.tail[first].data))
		o.waits, o.dropped = o.waits-n, o.dropped+n
	}
	o.tail = slices.Delete(o.tail, 0, first)
	if o.again == nil {
		o.again = time.AfterFunc(tryAfter, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.release(); len(o.tail) > 0 && o.again != nil {
				o.again.Reset(tryAfter)
			}
		})
	}
}

// release writes down what waits in memory, if there is room.
func (o *output) release() {
	if len(o.tail) > 0 && o.hasRoom(int(o.waits)) {
		o.writeTail()
	}
}

// writeTail writes down how much was dropped, if something was, and what came after that.
func (o *output) writeTail() {
	if o.dropped > 0 {
		text := fmt.Sprintf("[forewarm: %d bytes of output were dropped here: its node keeps %d MiB that could not be "+
			"sent]\n", o.dropped, mostSegment*mostSegments>>20)
		if !o.keep(streamErr, o.clock.Now(), []byte(text)) {
			return
		}
		o.dropped = 0
	}
	for i, h := range o.tail {
		if !o.keep(h.stream, h.at, h.data) {
			o.tail = slices.Delete(o.tail, 0, i)
			return
		}
		o.waits -= int64(len(h.data))
	}
	o.tail = nil
	if o.again != nil {
		o.again.Stop()
		o.again = nil
	}
}

// keep writes a record, all of it or nothing.
func (o *output) keep(stream byte, at time.Time, data []byte) bool {
	if o.file == nil {
		f, err := os.OpenFile(o.folder.segment(o.total), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if o.note(err); err != nil {
			return false
		}
		o.file, o.size = f, 0
	}
	o.record = appendRecord(o.record[:0], stream, at, data)
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

// close makes what was kept durable, and writes down what waits in memory beyond all bounds.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writeTail()
	o.tail = nil // where the disk is full, nothing more is tried: the folder may be another attempt's soon
	if o.again != nil {
		o.again.Stop()
		o.again = nil
	}
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
