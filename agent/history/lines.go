package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line, in bytes, that is read. A longer one is a broken
// row: it is skipped without being held in memory.
const MaxLine = 1 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b}
	utf8Mark  = []byte{0xef, 0xbb, 0xbf}
)

// errLongLine is the broken row of a line over MaxLine.
var errLongLine = &RowError{Rule: "must be at most 1 MiB long"}

// lines reads bounded lines, without their end of line.
type lines struct {
	r      *bufio.Reader
	buf    []byte
	number int64
}

// newLines reads r, unpacking it first if it begins with gzip's magic bytes.
func newLines(r io.Reader) (*lines, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	if magic, err := buffered.Peek(2); err != nil || !bytes.Equal(magic, gzipMagic) {
		return &lines{r: buffered}, nil
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("unpacking gzip: %w", err)
	}
	return &lines{r: bufio.NewReaderSize(unpacked, 64<<10)}, nil
}

// nextLine returns the next line, valid until the following call. long is true for
// a line over MaxLine, whose text is dropped. The error is io.EOF at the end.
func (l *lines) nextLine() (text []byte, long bool, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if long = long || len(l.buf)+len(part) > MaxLine+2; long {
			l.buf = l.buf[:0]
		} else {
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (len(l.buf) > 0 || long):
		case err != nil:
			return nil, false, err
		}
		l.number++
		text = l.trimLine()
		return text, long || len(text) > MaxLine, nil
	}
}

// trimLine cuts the end of line, and a byte order mark before the first line.
func (l *lines) trimLine() []byte {
	text := bytes.TrimSuffix(l.buf, []byte("\n"))
	text = bytes.TrimSuffix(text, []byte("\r"))
	if l.number == 1 {
		text = bytes.TrimPrefix(text, utf8Mark)
	}
	return text
}
