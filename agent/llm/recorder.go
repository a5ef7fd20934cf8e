package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxBody bounds an answer in bytes. The longest useful one is a tenth of it.
const maxBody = 256 << 10

// errTooLong says that an answer exceeds maxBody.
var errTooLong = errors.New("the answer is too long")

// recorder passes one call on, bounds the answer, and keeps what go-openai drops:
// the status and the headers of a failure.
type recorder struct {
	client *http.Client
	status int
	header http.Header
	failed error // of the transport
	long   bool
}

// Do implements openai.HTTPDoer.
func (r *recorder) Do(request *http.Request) (*http.Response, error) {
	response, err := r.client.Do(request)
	if err != nil {
		r.failed = err
		return nil, err
	}
	r.status, r.header = response.StatusCode, response.Header
	response.Body = &bounded{recorder: r, body: response.Body, left: maxBody}
	return response, nil
}

// explainFailure sorts the failure of a call. It says what happened in our own words:
// the library's error quotes the body, which may hold anything.
func (r *recorder) explainFailure(ctx context.Context, err error) error {
	e := &Error{Kind: KindInvalid, Status: r.status}
	switch {
	case ctx.Err() != nil:
		e.Kind, e.Err = KindUnavailable, fmt.Errorf("waiting for the answer: %w", ctx.Err())
	case r.failed != nil:
		e.Kind, e.Err = KindUnavailable, fmt.Errorf("calling the model's server: %w", r.failed)
	case r.long:
		e.Err = errTooLong
	case r.status == 0:
		e.Kind, e.Err = KindDenied, fmt.Errorf("building the request: %w", err)
	case r.status == http.StatusTooManyRequests:
		e.Kind, e.RetryAfter = KindThrottled, retryAfter(r.header)
	case r.status >= http.StatusInternalServerError || r.status == http.StatusRequestTimeout:
		e.Kind, e.RetryAfter = KindUnavailable, retryAfter(r.header)
	case r.status >= http.StatusMultipleChoices:
		e.Kind = KindDenied
	default:
		e.Err = errors.New("reading the answer: it is not the JSON of a chat completion")
	}
	return e
}

// bounded fails a body that goes on beyond left bytes.
type bounded struct {
	recorder *recorder
	body     io.ReadCloser
	left     int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		b.recorder.long = true
		return 0, errTooLong
	}
	n, err := b.body.Read(p[:min(len(p), b.left+1)])
	b.left -= n
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error { return b.body.Close() }
