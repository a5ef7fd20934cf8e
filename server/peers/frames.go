package peers

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/forewarm/forewarm/ledger"
)

// A connection carries frames: four bytes of length, one of kind, eight that
// number the call, and what the kind says. Numbers are big-endian; texts have their
// length before them.
const (
	frameHead = 13
	// maxFrame bounds what one frame holds. A larger request is decided where it came,
	// and of a larger reply only that it is there is told.
	maxFrame = 1 << 20
	maxBody  = maxFrame - maxActor - 4*maxText
	maxActor = 64 << 10
	maxText  = 1 << 10 // of an operation's id, an idempotency key, a request's id
)

type kind byte

const (
	hello    kind = iota + 1 // from who was called, first: its id
	call                     // from who calls
	withdraw                 // from who calls: nobody waits for the reply of the same number
	reply                    // to the call of the same number
	ping                     // from who calls
	pong                     // to each ping
	leaving                  // from who was called: it takes no more calls
)

// frame is one frame as it was read. Its content is only valid until the next.
type frame struct {
	kind    kind
	number  uint64
	content []byte
}

var errFrame = errors.New("the other side does not speak as servers do to each other")

// appendFrame appends a frame with what write appends as its content.
func appendFrame(b []byte, k kind, number uint64, write func([]byte) []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, byte(k))
	b = binary.BigEndian.AppendUint64(b, number)
	if write != nil {
		b = write(b)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4)) //nolint:gosec // far below: see maxFrame
	return b
}

// readFrame reads a frame into buf, and returns buf, which it may have replaced.
func readFrame(r *bufio.Reader, buf []byte) (frame, []byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, buf, fmt.Errorf("reading a frame: %w", err)
	}
	length := int(binary.BigEndian.Uint32(head[:])) - (frameHead - 4)
	if length < 0 || length > maxFrame {
		return frame{}, buf, errFrame
	}
	if cap(buf) < length {
		buf = make([]byte, length)
	}
	buf = buf[:length]
	if _, err := io.ReadFull(r, buf); err != nil {
		return frame{}, buf, fmt.Errorf("reading a frame: %w", err)
	}
	return frame{kind: kind(head[4]), number: binary.BigEndian.Uint64(head[5:]), content: buf}, buf, nil
}

// Call is a change that another server is asked to decide.
type Call struct {
	Operation string       // which, by its id in the API's description
	Actor     ledger.Actor // who asks, as the caller has proved
	Key       string       // of idempotency; empty: none
	Request   string       // the id of the HTTP request, for the log
	At        time.Time    // when it was asked, by the caller's clock
	Body      []byte       // JSON
}

// Reply is what came of a Call.
type Reply struct {
	Status   int
	Replayed bool // it is the stored answer of the first such request
	Failed   bool // Body is a problem document
	Body     []byte
}

// appendTo appends a call's content. actor is the actor in JSON.
func (c *Call) appendTo(b, actor []byte) []byte {
	for _, text := range []string{c.Operation, c.Key, c.Request} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	b = append(binary.AppendUvarint(b, uint64(len(actor))), actor...)
	b = binary.AppendVarint(b, c.At.UnixNano())
	return append(b, c.Body...)
}

// parseCall reads what appendTo wrote; the actor comes in JSON. What it returns does
// not rest on b.
func parseCall(b []byte) (c Call, actor []byte, err error) {
	r := contentReader{rest: b}
	for _, text := range []*string{&c.Operation, &c.Key, &c.Request} {
		*text = string(r.readBytes(maxText))
	}
	actor = r.readBytes(maxActor)
	c.At = time.Unix(0, r.readVarint()).UTC()
	c.Body = append([]byte(nil), r.rest...)
	return c, actor, r.err
}

// tooLong is the status of a reply that is left out, because it is too long.
const tooLong = 0

func (p Reply) appendTo(b []byte) []byte {
	var flags byte
	if p.Replayed {
		flags |= 1
	}
	if p.Failed {
		flags |= 2
	}
	if len(p.Body) > maxBody {
		p.Status, p.Body = tooLong, nil
	}
	return append(append(binary.AppendUvarint(b, uint64(p.Status)), flags), p.Body...) //nolint:gosec // a status
}

func parseReply(b []byte) (Reply, error) {
	r := contentReader{rest: b}
	status := r.readUvarint()
	if r.err != nil || len(r.rest) == 0 || status > 999 {
		return Reply{}, errFrame
	}
	flags := r.rest[0]
	return Reply{Status: int(status), Replayed: flags&1 != 0, Failed: flags&2 != 0,
		Body: append([]byte(nil), r.rest[1:]...)}, nil
}

// contentReader reads a frame's content from its beginning.
type contentReader struct {
	rest []byte
	err  error
}

func (r *contentReader) readUvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	return readNumber(r, v, n)
}

func (r *contentReader) readVarint() int64 {
	v, n := binary.Varint(r.rest)
	return readNumber(r, v, n)
}

// readNumber steps over a number that took n bytes.
func readNumber[N int64 | uint64](r *contentReader, v N, n int) N {
	if n <= 0 {
		r.err, r.rest = errFrame, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *contentReader) readBytes(most int) []byte {
	n := r.readUvarint()
	if n > uint64(most) || n > uint64(len(r.rest)) {
		r.err, r.rest = errFrame, nil
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

// actors remembers who asked lately, by their JSON, which costs more to read than all
// the rest of a call.
type actors map[string]ledger.Actor

// Bounds of what one connection remembers.
const (
	maxActors     = 1024
	maxKnownActor = 4 << 10 // bytes
)

func (known actors) parseActor(text []byte) (ledger.Actor, error) {
	if a, ok := known[string(text)]; ok {
		return a, nil
	}
	var a ledger.Actor
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("reading who asks: %w", err)
	}
	if len(text) > maxKnownActor {
		return a, nil
	}
	if len(known) >= maxActors {
		clear(known)
	}
	known[string(text)] = a
	return a, nil
}
