package session

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// Line carries messages over a connection of bytes, each with its length before it. Send and Receive may be called
// at the same time, Receive by one goroutine.
type Line struct {
	conn    net.Conn
	reader  *bufio.Reader
	in      []byte // of the last message
	sending sync.Mutex
	out     []byte
}

// NewLine returns a line over a connection, which is the line's from then on.
func NewLine(conn net.Conn) *Line { return &Line{conn: conn, reader: bufio.NewReader(conn)} }

// Send sends a message. It blocks while the other side does not read.
func (l *Line) Send(c Channel, data []byte) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.out = binary.BigEndian.AppendUint32(l.out[:0], uint32(len(data))+1) //nolint:gosec // at most 32 KiB
	_, err := l.conn.Write(AppendMessage(l.out, c, data))
	return err
}

// Receive returns the next message, whose data is valid until the next call.
func (l *Line) Receive() (Channel, []byte, error) {
	message, err := ReadFrame(l.reader, l.in, MostData+1)
	if err != nil {
		return 0, nil, err
	}
	l.in = message
	return ParseMessage(message)
}

// Close ends the line.
func (l *Line) Close() { _ = l.conn.Close() }

// AppendFrame appends a text with its length before it.
func AppendFrame(b, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...) //nolint:gosec // bounded where it is read
}

// ReadFrame reads a text with its length before it, into buf where it has room. One of more than most bytes is an
// error.
func ReadFrame(r io.Reader, buf []byte, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > most {
		return nil, fmt.Errorf("%w: the other side sent %d bytes", ErrMessage, n)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err := io.ReadFull(r, buf)
	return buf, err
}
