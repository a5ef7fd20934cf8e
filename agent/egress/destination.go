package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// RefusedError says that a request was not sent, because of where it would have
// gone or what it was.
type RefusedError struct {
	// Destination is the scheme, host and port that were asked for.
	Destination string
	// Why is the rule that was broken.
	Why string
}

// Error names the destination and the rule.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("refusing to send to %s: %s", e.Destination, e.Why)
}

// destination is what must be equal for a request to be let through.
type destination struct{ scheme, host, port string }

func (d destination) String() string { return d.scheme + "://" + net.JoinHostPort(d.host, d.port) }

// destinationOf reads a destination from a URL, with the port that its scheme
// implies.
func destinationOf(u *url.URL) destination {
	d := destination{scheme: strings.ToLower(u.Scheme), host: strings.ToLower(u.Hostname()), port: u.Port()}
	if d.port == "" {
		d.port = map[string]string{"http": "80", "https": "443"}[d.scheme]
	}
	return d
}

// Check says what is wrong with a base URL of a configuration, or returns nil.
func Check(base string) error {
	_, err := parseDestination(base)
	return err
}

// parseDestination checks a base URL of the configuration. Its errors do not
// repeat the URL, which may hold a password.
func parseDestination(base string) (destination, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return destination{}, errors.New("must be like https://host or https://host:port/path")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return destination{},
			errors.New("must have no user, query or fragment: give keys by the environment or the keyring")
	}
	d := destinationOf(u)
	if d.scheme == "http" && !isLoopback(d.host) {
		return destination{}, errors.New("must be https unless it is on this machine (localhost, 127.0.0.1, ::1)")
	}
	return d, nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && address.IsLoopback())
}

// newTransport carries requests to one destination, without a proxy.
func newTransport(d destination) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if d.scheme == "http" {
		dialer.ControlContext = onlyLoopback
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           4,
		MaxConnsPerHost:        8,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	}
}

// onlyLoopback refuses, at the last moment, an address that a name such as
// localhost should not have.
func onlyLoopback(_ context.Context, _, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !isLoopback(host) {
		return &RefusedError{Destination: "http://" + address, Why: "plain HTTP stays on this machine"}
	}
	return nil
}
