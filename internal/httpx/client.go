package httpx

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Config says how far a client trusts its peers.
type Config struct {
	// Timeout bounds one exchange, from dialling to the last byte of the body.
	// Zero means 30 s; negative means none, for streams that a context ends.
	Timeout time.Duration
	// MaxBody bounds the body of an answer in bytes; reading on fails with a
	// *TooLargeError. Zero means 1 MiB; negative means no limit, for streams.
	MaxBody int64
	// UserAgent is sent with requests that set none. Empty means "forewarm".
	UserAgent string
	// Transport carries the requests. Nil means net/http's defaults, among them
	// the proxy of the environment.
	Transport http.RoundTripper
}

// WithDefaults returns c with every zero field filled in.
func (c Config) WithDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.MaxBody == 0 {
		c.MaxBody = 1 << 20
	}
	if c.UserAgent == "" {
		c.UserAgent = "forewarm"
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	return c
}

// NewClient returns a client with the limits of c. It keeps no cookies and
// follows no redirect: a redirect is an answer, since following it would carry
// credentials to where nobody sent them.
func NewClient(c Config) *http.Client {
	c = c.WithDefaults()
	return &http.Client{
		Timeout:   max(c.Timeout, 0),
		Transport: &limitedTransport{next: c.Transport, userAgent: c.UserAgent, maxBody: c.MaxBody},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// limitedTransport names us in requests and bounds the bodies of answers.
type limitedTransport struct {
	next      http.RoundTripper
	userAgent string
	maxBody   int64
}

// RoundTrip implements http.RoundTripper.
func (t *limitedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("User-Agent") == "" {
		req = req.Clone(req.Context()) // a round tripper must not change its request
		req.Header.Set("User-Agent", t.userAgent)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err // the client wraps it with method and URL
	}
	if t.maxBody >= 0 {
		resp.Body = LimitBody(resp.Body, t.maxBody)
	}
	return resp, nil
}

// CloseIdleConnections passes the client's call of the same name on.
func (t *limitedTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// HideURL returns err with the URL that net/http's client puts into its errors
// cut down to the host, because the query and path may hold secrets. The cause
// stays wrapped. An error without a URL is returned as it is.
func HideURL(err error) error {
	var with *url.Error
	if !errors.As(err, &with) {
		return err
	}
	host := "the server"
	if u, parseErr := url.Parse(with.URL); parseErr == nil && u.Host != "" {
		host = u.Host
	}
	return fmt.Errorf("%s %s: %w", with.Op, host, with.Err)
}

// Drain reads what is left of a body, up to 64 KiB, and closes it, so that the
// connection can be used again. It ignores errors, which cost only that.
func Drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}
