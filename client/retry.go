package client

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/forewarm/forewarm/contract"
)

// Patient is a Doer that tries again when the server says when: after 429 (too
// many requests) and 503 (not now) that carry Retry-After. It repeats only what
// is safe to repeat: what only reads, and a POST with an idempotency key, with
// the same one. After 429 anything is, because nothing was done.
type Patient struct {
	Next Doer // sends the requests
	// Wait waits, or less when the context ends; then it returns the reason.
	Wait func(context.Context, time.Duration) error
	// Limit is how long all waits of one request may be together. What would
	// take longer is answered as it came.
	Limit time.Duration
	// OnWait is called before each wait, if it is there, with the problem that the
	// server told; its code is empty where it told none.
	OnWait func(time.Duration, contract.Problem)
}

// Do sends a request until it is answered for good.
func (p Patient) Do(r *http.Request) (*http.Response, error) {
	left := p.Limit
	for {
		resp, err := p.Next.Do(r)
		if err != nil {
			return nil, err
		}
		after, ok := mayRepeat(r, resp)
		if !ok || after > left {
			return resp, nil
		}
		if err := p.waitAndRewind(r, resp, after); err != nil {
			return nil, err
		}
		left -= after
	}
}

// waitAndRewind lets go of an answer, waits, and makes the request ready to be sent again.
func (p Patient) waitAndRewind(r *http.Request, resp *http.Response, after time.Duration) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // so that its connection can be used again, too
	_ = resp.Body.Close()
	var why contract.Problem
	if err != nil || json.Unmarshal(body, &why) != nil {
		why = contract.Problem{}
	}
	if p.OnWait != nil {
		p.OnWait(after, why)
	}
	if err := p.Wait(r.Context(), after); err != nil {
		return err
	}
	if r.GetBody == nil {
		return nil
	}
	r.Body, err = r.GetBody()
	return err
}

// mayRepeat reports whether a request may be sent once more, and when.
func mayRepeat(r *http.Request, resp *http.Response) (after time.Duration, ok bool) {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > math.MaxInt32 || r.Body != nil && r.Body != http.NoBody &&
		r.GetBody == nil {
		return 0, false
	}
	after = max(time.Duration(seconds)*time.Second, 100*time.Millisecond)
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return after, true
	case http.StatusServiceUnavailable:
		return after, isRepeatable(r)
	default:
		return 0, false
	}
}

func isRepeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodPost:
		return r.Header.Get(contract.HeaderIdempotencyKey) != ""
	default:
		return false
	}
}
