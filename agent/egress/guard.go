package egress

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"
)

// TooLargeError says that a body is over its limit.
type TooLargeError struct {
	// What is "request" or "response".
	What string
	// Limit is in bytes.
	Limit int64
}

// Error names the body and the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s body is over %d bytes", e.What, e.Limit)
}

// maxPath is the longest path, in bytes, that fits a line of the log with ease.
const maxPath = 4 << 10

// guard lets requests to one destination through and enters them in the log.
type guard struct {
	egress                  *Egress
	kind                    Kind
	only                    destination
	next                    http.RoundTripper
	maxRequest, maxResponse int64
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.checkRequest(req); err != nil {
		closeBody(req)
		return nil, err
	}
	body, err := g.readBody(req)
	if err != nil {
		return nil, err
	}
	sent := Entry{
		Event: Sent, Kind: g.kind, Method: req.Method, Path: req.URL.EscapedPath(),
		Out: int64(len(body)), Body: hashOf(body),
	}
	if err := g.egress.logEntry(sent); err != nil {
		return nil, fmt.Errorf("not sending what cannot be logged: %w", err)
	}
	resp, err := g.next.RoundTrip(replaceBody(req, body))
	if err != nil {
		return nil, err
	}
	received := sent
	received.Event, received.Out, received.Status = Received, 0, resp.StatusCode
	resp.Body = &counted{ReadCloser: resp.Body, guard: g, entry: received, sum: sha256.New()}
	return resp, nil
}

// CloseIdleConnections passes the wish on.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// checkRequest refuses what is not for the destination. A Host header of its own could
// reach another site behind the same address.
func (g *guard) checkRequest(req *http.Request) error {
	asked := destinationOf(req.URL)
	why := ""
	switch {
	case asked != g.only:
		why = "it is not the configured " + string(g.kind) + ", " + g.only.String()
	case req.Host != "" && req.Host != req.URL.Host:
		why = "the Host header names another host"
	case req.URL.User != nil:
		why = "the URL holds a user"
	case len(req.URL.EscapedPath()) > maxPath:
		why = "the path is too long to log"
	case req.Method == http.MethodConnect:
		why = "CONNECT opens a tunnel"
	default:
		return nil
	}
	return &RefusedError{Destination: asked.String(), Why: why}
}

func (g *guard) readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer closeBody(req)
	body, err := io.ReadAll(io.LimitReader(req.Body, g.maxRequest+1))
	if err != nil {
		return nil, fmt.Errorf("reading request body: %w", err)
	}
	if int64(len(body)) > g.maxRequest {
		return nil, &TooLargeError{What: "request", Limit: g.maxRequest}
	}
	return body, nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // Its content is not wanted, or is already in memory.
	}
}

// replaceBody returns a copy of the request that sends exactly the logged bytes.
func replaceBody(req *http.Request, body []byte) *http.Request {
	out := req.Clone(req.Context())
	out.ContentLength = int64(len(body))
	out.TransferEncoding, out.Trailer = nil, nil
	if len(body) == 0 {
		out.Body, out.GetBody = http.NoBody, nil
		return out
	}
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, _ = out.GetBody()
	return out
}

func hashOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// counted is a response body that is bounded, and logged once when it ends.
type counted struct {
	io.ReadCloser
	guard *guard

	mu    sync.Mutex // Read and Close may come from two goroutines.
	entry Entry
	sum   hash.Hash
	done  bool
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sum.Write(p[:n])
	c.entry.In += int64(n)
	if c.entry.In > c.guard.maxResponse {
		return n, &TooLargeError{What: "response", Limit: c.guard.maxResponse}
	}
	if err != nil {
		if failed := c.finishEntry(); failed != nil && errors.Is(err, io.EOF) {
			err = failed
		}
	}
	return n, err
}

// Close implements io.Closer.
func (c *counted) Close() error {
	err := c.ReadCloser.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(err, c.finishEntry())
}

// finishEntry logs what was received, once. The caller holds the lock.
func (c *counted) finishEntry() error {
	if c.done {
		return nil
	}
	c.done = true
	c.entry.Body = hex.EncodeToString(c.sum.Sum(nil))
	return c.guard.egress.logEntry(c.entry)
}
