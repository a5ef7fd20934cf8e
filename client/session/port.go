package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"

	"github.com/coder/websocket"

	wire "github.com/forewarm/forewarm/contract/session"
)

// Conn is a connection to a port of a node. Read and Write may be called at the same time,
// each by one goroutine.
type Conn struct {
	out    *sender
	cancel context.CancelFunc
	rest   []byte // of what was received, and not read
	ended  error
	once   sync.Once
}

// Connect connects to a TCP port of the loopback interface of a node. The context is the
// connection's: when it ends, so does the connection. Whether anything listens there is told
// by the first Read, as an *EndError.
func (s Server) Connect(ctx context.Context, allocationID string, node, port int) (*Conn, error) {
	conn, err := s.dial(ctx, url.Values{"node": {strconv.Itoa(node)}, "port": {strconv.Itoa(port)}}, "allocations",
		allocationID, "port")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Conn{out: &sender{ctx: ctx, conn: conn}, cancel: cancel}, nil
}

// Read implements io.Reader. At the end of what the port sends it returns io.EOF.
func (c *Conn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 && c.ended == nil {
		_, message, err := c.out.conn.Read(c.out.ctx)
		if err != nil {
			c.ended = fmt.Errorf("%w: %w", ErrCut, err)
			break
		}
		channel, data, err := wire.ParseMessage(message)
		switch {
		case err != nil:
			c.ended = err
		case channel == wire.Stdout:
			c.rest = append(c.rest[:0], data...)
		case channel == wire.Close:
			c.ended = io.EOF
		case channel == wire.Result:
			if _, c.ended = endOf(c.out.conn, data); c.ended == nil {
				c.ended = io.EOF
			}
		}
	}
	if len(c.rest) == 0 {
		return 0, c.ended
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write implements io.Writer.
func (c *Conn) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		n := min(len(p), wire.MostData)
		if err := c.out.send(wire.Stdin, p[:n]); err != nil {
			return written, fmt.Errorf("%w: %w", ErrCut, err)
		}
		written, p = written+n, p[n:]
	}
	return written, nil
}

// CloseWrite says that nothing more is written. What the port sends can still be read.
func (c *Conn) CloseWrite() error { return c.out.send(wire.Close, []byte{byte(wire.Stdin)}) }

// Close ends the connection.
func (c *Conn) Close() error {
	var err error
	c.once.Do(func() {
		err = c.out.conn.Close(websocket.StatusNormalClosure, "")
		c.cancel()
		if websocket.CloseStatus(err) != -1 || errors.Is(err, io.EOF) {
			err = nil
		}
	})
	return err
}
