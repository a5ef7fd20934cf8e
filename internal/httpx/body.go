package httpx

import (
	"bytes"
	"fmt"
	"io"
)

// MaxDepth is how deep arrays and objects may nest in JSON from outside.
const MaxDepth = 32

// TooLargeError is the error of a body that goes on beyond its limit.
type TooLargeError struct {
	Limit int64 // in bytes
}

// Error names the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the body is larger than %d bytes", e.Limit)
}

// LimitBody returns body cut off after limit bytes: reading on fails with a
// *TooLargeError, while a body of exactly limit bytes ends as usual. A negative
// limit is zero. Closing it closes body.
func LimitBody(body io.ReadCloser, limit int64) io.ReadCloser {
	limit = max(limit, 0)
	return &limitedBody{ReadCloser: body, limit: limit, left: limit}
}

// ReadBody reads r to its end. Beyond limit bytes it gives up with a
// *TooLargeError and no data.
func ReadBody(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(LimitBody(io.NopCloser(r), limit))
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	return data, nil
}

// WholeBody is a body that was read before: who knows it need not read it again.
type WholeBody struct {
	bytes.Reader
	data []byte
}

// NewWholeBody returns a body of the data.
func NewWholeBody(data []byte) *WholeBody {
	b := &WholeBody{data: data}
	b.Reset(data)
	return b
}

// Bytes returns the whole body, however much of it was read. It must not be changed.
func (b *WholeBody) Bytes() []byte { return b.data }

// Close implements io.Closer.
func (*WholeBody) Close() error { return nil }

type limitedBody struct {
	io.ReadCloser
	limit, left int64
	err         error // sticky
}

// Read implements io.Reader. It asks for one byte more than is left, to tell a
// body that ends at the limit from one that goes on.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if int64(len(p))-1 > b.left {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), &TooLargeError{Limit: b.limit}
	}
	b.left -= int64(n)
	b.err = err
	return n, err
}
