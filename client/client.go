// Package client is the Go SDK: one method for each route of the API, over the
// types of package contract.
//
// It never builds an HTTP client: the caller brings one, and with it decides on
// proxies, TLS, time limits and what may be reached at all. A Client holds no
// state and is safe for concurrent use.
//
// Failures are *Error, found with errors.As, and carry the server's problem
// document. Every POST, PUT, PATCH and DELETE but that of CreateKey carries an
// idempotency key, so the caller may send a request again after a broken
// connection by using the same context from WithIdempotencyKey. Patient does that
// for a server that asks to wait, and Poll waits for what takes longer than a request.
// Package client/allocation holds GPUs for a program in one call. The examples are the
// manual: each runs against the real server.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// Doer sends requests. An *http.Client is one.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Client calls one server with one API key.
type Client struct {
	base *url.URL
	key  string
	http Doer
}

// New returns a client of the server at baseURL, such as
// https://forewarm.example.com; a path before /v1 is kept. The key may be empty
// for the few routes that need none.
func New(baseURL, key string, doer Doer) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(baseURL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("the server's address must be a URL such as http://127.0.0.1:8787")
	}
	if doer == nil {
		return nil, errors.New("no HTTP client was given")
	}
	base.User, base.RawQuery, base.Fragment = nil, "", ""
	return &Client{base: base, key: key, http: doer}, nil
}

type idempotencyKey struct{}

// WithIdempotencyKey returns a context whose requests carry the key instead of a
// fresh one: the same key sent twice has one effect.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, key)
}

// maxAnswer is more than any answer of the API; what is longer is not one.
const maxAnswer = 32 << 20

// call is one request.
type call struct {
	method string
	path   []string // segments below /v1, escaped when sent
	query  url.Values
	body   any
	header http.Header
	// unrepeatable marks a request whose repeat makes another secret, so that it must
	// carry no key.
	unrepeatable bool
}

// callFor sends a call and decodes the answer into T. An empty answer leaves T zero.
func callFor[T any](ctx context.Context, c *Client, r call) (T, error) {
	var out T
	resp, err := c.sendCall(ctx, r)
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return out, fmt.Errorf("reading the answer of %s %s: %w", r.method, resp.Request.URL.Path, err)
	}
	if len(body) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("decoding the answer of %s %s: %w", r.method, resp.Request.URL.Path, err)
	}
	return out, nil
}

// sendCall sends a call and turns every status but those of success into an *Error: a
// redirect, which is not followed with a key, is none. The caller closes the body.
func (c *Client) sendCall(ctx context.Context, r call) (*http.Response, error) {
	req, err := c.buildRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("calling %s %s: %w", r.method, req.URL.Path, err)
	}
	if !Succeeded(resp) {
		defer func() { _ = resp.Body.Close() }()
		return nil, readProblem(resp)
	}
	return resp, nil
}

// Address is where a path below /v1 of the server is, by its segments, and Authorize what a
// request there has to carry, for requests that this package does not send. An empty segment is
// refused: the path would be that of another route.
func (c *Client) Address(query url.Values, segments ...string) (string, error) {
	if slices.Contains(segments, "") {
		return "", fmt.Errorf("an id or a name is empty: %s", strings.Join(segments, "/"))
	}
	target := c.base.JoinPath("v1").JoinPath(escapeSegments(segments)...)
	target.RawQuery = query.Encode()
	return target.String(), nil
}

// Authorize adds the key to the headers of a request to Address.
func (c *Client) Authorize(header http.Header) {
	if c.key != "" {
		header.Set("Authorization", "Bearer "+c.key)
	}
}

func (c *Client) buildRequest(ctx context.Context, r call) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encoding the body of %s: %w", r.method, err)
		}
		body = bytes.NewReader(encoded)
	}
	address, err := c.Address(r.query, r.path...)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", r.method, err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json, "+contract.ProblemContentType)
	}
	c.Authorize(req.Header)
	if r.method != http.MethodGet && !r.unrepeatable {
		req.Header.Set(contract.HeaderIdempotencyKey, keyFor(ctx))
	}
	return req, nil
}

func keyFor(ctx context.Context) string {
	if key, ok := ctx.Value(idempotencyKey{}).(string); ok && key != "" {
		return key
	}
	return rand.Text()
}

// escapeSegments keeps an id with a slash or dots in it from naming another route.
func escapeSegments(segments []string) []string {
	escaped := make([]string, len(segments))
	for i, s := range segments {
		escaped[i] = url.PathEscape(s)
		if strings.Trim(s, ".") == "" {
			escaped[i] = strings.ReplaceAll(s, ".", "%2E")
		}
	}
	return escaped
}

// ifMatch asks that the resource still has the version that was read.
func ifMatch(version int) http.Header {
	return http.Header{"If-Match": {strconv.Quote(strconv.Itoa(version))}}
}
