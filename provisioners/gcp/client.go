//go:build clouds

package gcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	transport "google.golang.org/api/transport/http"

	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/provisioners"
)

// maxAnswer bounds one answer of the API: 500 instances with their metadata, of
// which the start-up scripts are most.
const maxAnswer = 128 << 20

// sentError is the error of a request that may have reached the service. Other
// errors of the client come from before, such as those of credentials.
type sentError struct{ err error }

func (e *sentError) Error() string { return e.err.Error() }
func (e *sentError) Unwrap() error { return e.err }

// wire is the innermost transport: it marks what may have been sent.
type wire struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(r)
	var dial *net.OpError
	if err == nil || errors.As(err, &dial) && dial.Op == "dial" {
		return response, err
	}
	return nil, &sentError{err: err}
}

// computeService returns the API's client, which it makes at the first call: finding
// credentials may need the network, which a program that starts may not have.
func (c *Cloud) computeService(ctx context.Context) (*compute.Service, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.api != nil {
		return c.api, nil
	}
	api, err := c.config.newComputeService(ctx)
	if err != nil {
		return nil, &provisioners.Error{Kind: provisioners.KindDenied, Scope: "credentials",
			Message: "finding credentials", Err: err}
	}
	c.api = api
	return api, nil
}

func (c Config) newComputeService(ctx context.Context) (*compute.Service, error) {
	ctx = context.WithoutCancel(ctx) // the client outlives the call that made it
	endpoint, err := c.baseURL()
	if err != nil {
		return nil, err
	}
	var carrier http.RoundTripper = wire{next: newTransport()}
	if !c.isPlaintext() {
		options, err := c.clientOptions()
		if err != nil {
			return nil, err
		}
		if carrier, err = transport.NewTransport(ctx, carrier, options...); err != nil {
			return nil, err
		}
	}
	// Each call has a deadline of its own, hence none here.
	client := httpx.NewClient(httpx.Config{Timeout: -1, MaxBody: maxAnswer, Transport: carrier})
	options := []option.ClientOption{option.WithHTTPClient(client)}
	if endpoint != "" {
		options = append(options, option.WithEndpoint(endpoint))
	}
	return compute.NewService(ctx, options...)
}

// newTransport uses the environment's proxy, as every Google client does.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     httpx.IdleTimeout,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 16,
	}
}

// credentialTypes are what a file of credentials may say that it is.
var credentialTypes = []option.CredentialsType{
	option.ServiceAccount, option.AuthorizedUser, option.ImpersonatedServiceAccount, option.ExternalAccount,
}

func (c Config) clientOptions() ([]option.ClientOption, error) {
	options := []option.ClientOption{option.WithScopes(compute.ComputeScope)}
	if c.CredentialsFile == "" {
		return options, nil
	}
	text, err := os.ReadFile(c.CredentialsFile)
	if err != nil {
		return nil, fmt.Errorf("reading credentials_file: %w", err)
	}
	var file struct {
		Type option.CredentialsType `json:"type"`
	}
	// The text of the error is left out: it could quote the file.
	if json.Unmarshal(text, &file) != nil || !slices.Contains(credentialTypes, file.Type) {
		return nil, errors.New("credentials_file: is not a JSON file with credentials of a type that is known")
	}
	return append(options, option.WithAuthCredentialsFile(file.Type, c.CredentialsFile)), nil
}
