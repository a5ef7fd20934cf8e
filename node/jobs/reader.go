package jobs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/contract"
)

const (
	mostPieces = 256       // of a request
	mostPart   = 512 << 10 // bytes of a request
	mostPiece  = 64 << 10  // bytes
	// mergeWithin is how far apart what becomes one piece was written.
	mergeWithin = 100 * time.Millisecond
)

// segmentPrefix begins the name of a file with output, which is the offset of its first byte.
const segmentPrefix = "output-"

func (f folder) segment(base int64) string {
	return f.file(fmt.Sprintf("%s%019d", segmentPrefix, base))
}

// segments are the offsets of the files with output, in their order.
func (f folder) segments() ([]int64, error) {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	var all []int64
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), segmentPrefix)
		if base, err := strconv.ParseInt(text, 10, 64); ok && err == nil {
			all = append(all, base)
		}
	}
	slices.Sort(all)
	return all, nil
}

// reader reads what a runner keeps, while it goes on writing.
type reader struct {
	folder folder
	next   int64  // the offset of the first byte that the server has not stored
	seen   cursor // a record that begins no later
	ahead  cursor // behind what was read last
	more   bool   // there was more than what was read last
}

// cursor is where a record begins.
type cursor struct {
	segment int64
	at      int64 // in its file
	offset  int64 // in the output
}

// read returns the next pieces of output, and removes files of which all is stored. None: there is none yet.
func (r *reader) read() ([]contract.JobOutputData, error) {
	all, err := r.folder.segments()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	r.next = max(r.next, all[0]) // what was before was stored, by an earlier daemon
	for i, base := range all {
		if i+1 < len(all) && all[i+1] <= r.next { // never the last, which may be written to
			if err := os.Remove(r.folder.segment(base)); err != nil {
				return nil, err
			}
			continue
		}
		r.more = i+1 < len(all)
		pieces, err := r.readSegment(base)
		if err != nil || len(pieces) > 0 {
			return pieces, err
		}
	}
	return nil, nil
}

// readSegment returns pieces of one file.
func (r *reader) readSegment(base int64) ([]contract.JobOutputData, error) {
	f, err := os.Open(r.folder.segment(base))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	c := cursor{segment: base, offset: base}
	if r.seen.segment == base && r.seen.offset <= r.next {
		c = r.seen
	}
	if _, err := f.Seek(c.at, io.SeekStart); err != nil {
		return nil, err
	}
	var p pieces
	for in := bufio.NewReaderSize(f, mostPiece); ; {
		rec, err := readRecord(in)
		if errors.Is(err, errNoRecord) {
			break
		}
		if err != nil {
			return nil, err
		}
		whole := int64(len(rec.data))
		if stored := r.next - c.offset; stored < whole {
			rec.data = rec.data[max(stored, 0):]
			if !p.add(rec) {
				r.more = true
				break
			}
		}
		c.at, c.offset = c.at+headerSize+whole, c.offset+whole
	}
	if r.ahead = c; len(p.all) == 0 {
		r.seen = c
	}
	return p.all, nil
}

// accept notes what the server says that it needs no more.
func (r *reader) accept(next int64) {
	if r.next = next; r.ahead.offset <= next {
		r.seen = r.ahead
	}
}

// removeAll removes all files with output.
func (r *reader) removeAll() error {
	all, err := r.folder.segments()
	for _, base := range all {
		err = errors.Join(err, os.Remove(r.folder.segment(base)))
	}
	return err
}

// pieces are those of one request.
type pieces struct {
	all  []contract.JobOutputData
	size int
}

// add adds a record, to the piece before it where it fits; false: the request is full.
func (p *pieces) add(rec record) bool {
	if p.size+len(rec.data) > mostPart {
		return false
	}
	if n := len(p.all); n > 0 {
		last := &p.all[n-1]
		if last.Stream == rec.stream && len(last.Data)+len(rec.data) <= mostPiece && rec.at.Sub(last.At) < mergeWithin {
			last.Data, p.size = append(last.Data, rec.data...), p.size+len(rec.data)
			return true
		}
	}
	if len(p.all) == mostPieces {
		return false
	}
	p.all = append(p.all, contract.JobOutputData{Stream: rec.stream, At: rec.at, Data: rec.data})
	p.size += len(rec.data)
	return true
}

// record is what a command wrote at once.
type record struct {
	stream string
	at     time.Time
	data   []byte
}

// headerSize is how many bytes are before the data of a record: one for the stream, eight for the
// time, four for the size.
const headerSize = 13

const (
	streamOut byte = 1
	streamErr byte = 2
)

func appendRecord(b []byte, stream byte, at time.Time, data []byte) []byte {
	b = append(b, stream)
	b = binary.BigEndian.AppendUint64(b, uint64(at.UnixNano())) //nolint:gosec // it is read back the same way
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))     //nolint:gosec // at most mostPiece
	return append(b, data...)
}

// errNoRecord says that there is no whole record: it is being written, or what wrote it was ended.
var errNoRecord = errors.New("no record")

func readRecord(in io.Reader) (record, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return record{}, notWhole(err)
	}
	size := binary.BigEndian.Uint32(header[9:])
	names := map[byte]string{streamOut: "stdout", streamErr: "stderr"}
	nanos := int64(binary.BigEndian.Uint64(header[1:])) //nolint:gosec // as it was written
	rec := record{stream: names[header[0]], at: time.Unix(0, nanos).UTC()}
	if rec.stream == "" || size == 0 || size > mostPiece {
		return record{}, errNoRecord
	}
	rec.data = make([]byte, size)
	_, err := io.ReadFull(in, rec.data)
	return rec, notWhole(err)
}

func notWhole(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errNoRecord
	}
	return err
}
