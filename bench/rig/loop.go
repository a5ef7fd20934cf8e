package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/ids"
)

// patience is how long one request may take before the run fails.
const patience = 2 * time.Minute

// Requests makes the n-th request of a connection: its path, body and content
// type. What it returns is only read.
type Requests func(connection, n int) (path, contentType string, body []byte)

// Answer is what a loop keeps of a request that succeeded.
type Answer struct {
	Took time.Duration
	Body []byte
}

// Result is what one loop did.
type Result struct {
	Counted  []Answer // answered inside the measured time
	Others   []Answer // answered before it, or after it by requests begun inside
	Elapsed  time.Duration
	CPUShare Share
}

// PerSecond is how many requests were answered in a second.
func (r Result) PerSecond() float64 { return float64(len(r.Counted)) / r.Elapsed.Seconds() }

// All are all answers: each was acknowledged, counted or not.
func (r Result) All() []Answer { return slices.Concat(r.Counted, r.Others) }

// Latencies are those of the counted requests.
func (r Result) Latencies() []time.Duration {
	out := make([]time.Duration, len(r.Counted))
	for i, a := range r.Counted {
		out[i] = a.Took
	}
	return out
}

// Fleet is the processes of one installation.
type Fleet struct {
	Servers []*Process // requests go to them in turn
	Workers []*Process // only their processor time is read
}

// Loop has n clients send requests over connections that are kept alive, each the next
// as soon as the one before is answered, to one server after the other. It measures
// after the warm-up. An answer that is not of the wanted status fails it.
func Loop(ctx context.Context, o Options, n int, f Fleet, key string, want int, requests Requests) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now().Add(o.WarmUp)
	end := begin.Add(o.Duration)
	parts, errs := make([]Result, n), make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			c := f.connect(key)
			defer c.close()
			parts[i], errs[i] = c.sendRequests(ctx, i, begin, end, want, requests)
			if errs[i] != nil {
				cancel()
			}
		})
	}
	time.Sleep(time.Until(begin))
	before := readUsage(f)
	time.Sleep(time.Until(end))
	share := readUsage(f).shareSince(before)
	wait.Wait()
	out := Result{Elapsed: o.Duration, CPUShare: share}
	for _, part := range parts {
		out.Counted, out.Others = append(out.Counted, part.Counted...), append(out.Others, part.Others...)
	}
	return out, errors.Join(errs...)
}

// turns is a client's connections, one to each server, which it uses in turn.
type turns []*Connection

func (f Fleet) connect(key string) turns {
	var all turns
	for _, p := range f.Servers {
		all = append(all, NewConnection(p.URL, key))
	}
	return all
}

func (all turns) close() {
	for _, c := range all {
		c.Close()
	}
}

// Connection is one kept-alive connection to a server. It is not safe for
// concurrent use.
type Connection struct {
	url       string
	transport *http.Transport
	header    http.Header
}

// NewConnection prepares a connection that carries the key.
func NewConnection(url, key string) *Connection {
	return &Connection{
		url:       url,
		transport: &http.Transport{MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1, DisableCompression: true},
		header:    http.Header{"Authorization": {"Bearer " + key}},
	}
}

// Close ends the connection.
func (c *Connection) Close() { c.transport.CloseIdleConnections() }

func (all turns) sendRequests(ctx context.Context, i int, begin, end time.Time, want int,
	requests Requests) (Result, error) {
	var r Result
	for n := 0; ; n++ {
		sent := time.Now()
		if !sent.Before(end) || ctx.Err() != nil {
			return r, nil
		}
		path, contentType, body := requests(i, n)
		answer, err := all[(i+n)%len(all)].Post(ctx, path, contentType, body, want)
		if err != nil {
			return r, err
		}
		if done := sent.Add(answer.Took); done.After(begin) && !done.After(end) {
			r.Counted = append(r.Counted, answer)
		} else {
			r.Others = append(r.Others, answer)
		}
	}
}

// Post sends one request under a new idempotency key and reads its answer.
func (c *Connection) Post(ctx context.Context, path, contentType string, body []byte, want int) (Answer, error) {
	return c.sendRequest(ctx, http.MethodPost, path, body, want, http.Header{"Content-Type": {contentType},
		"Idempotency-Key": {ids.UUID{}.New("try")}})
}

// Get sends one request and reads its answer.
func (c *Connection) Get(ctx context.Context, path string) (Answer, error) {
	return c.sendRequest(ctx, http.MethodGet, path, nil, http.StatusOK, http.Header{})
}

func (c *Connection) sendRequest(ctx context.Context, method, path string, body []byte, want int,
	header http.Header) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("making a request: %w", err)
	}
	req.Header = header
	req.Header["Authorization"] = c.header["Authorization"]
	sent := time.Now()
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return Answer{}, fmt.Errorf("sending to %s: %w", path, err)
	}
	data, err := io.ReadAll(resp.Body)
	took := time.Since(sent)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return Answer{}, fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	if resp.StatusCode != want {
		return Answer{}, fmt.Errorf("%s answered %s: %.400s", path, resp.Status, data)
	}
	return Answer{Took: took, Body: data}, nil
}
