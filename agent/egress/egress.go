// Package egress is the agent's only way to the network, and the only package
// in the agent that makes HTTP clients.
//
// Two destinations exist: the control plane and, where the customer has named
// one, the customer's own model. Any other is refused before anything is
// dialled: scheme, host and port must match, redirects are not followed, and no
// proxy is taken from the environment. TLS is required except on this machine.
// Every request is written to a hash-chained log before its first byte is sent;
// a request that cannot be logged is not sent.
package egress

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
)

// Kind names a destination.
type Kind string

// The two destinations.
const (
	ControlPlane Kind = "control_plane"
	Model        Kind = "model"
)

// Config says where the agent may send to.
type Config struct {
	// ControlPlane is the base URL of the control plane; required.
	ControlPlane string
	// Model is the base URL of the customer's model; empty means there is none.
	Model string
	// Ledger is the path of the egress log; empty keeps counts only, which is
	// meant for the simulator.
	Ledger string
	// Clock tells the times in the log; nil means the system's.
	Clock clock.Clock
	// Transport carries the requests that were let through; nil means a transport
	// of our own. The simulator passes one that stays in memory.
	Transport http.RoundTripper
	// MaxRequest and MaxResponse bound bodies in bytes; 0 means 1 MiB and 8 MiB.
	MaxRequest, MaxResponse int64
	// Timeout bounds one whole exchange; 0 means 2 minutes.
	Timeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.MaxRequest <= 0 {
		c.MaxRequest = 1 << 20
	}
	if c.MaxResponse <= 0 {
		c.MaxResponse = 8 << 20
	}
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Minute
	}
	return c
}

// Totals counts what went to and came from one destination, in bytes of bodies.
type Totals struct {
	Requests, Out, In int64
}

// Egress owns the two clients and the log. It is safe for concurrent use.
type Egress struct {
	controlPlane, model *http.Client

	mu     sync.Mutex
	totals map[Kind]Totals
	ledger *Ledger // nil when nothing is logged.
	clock  clock.Clock
}

// New checks the destinations and opens the log, which it verifies. The errors
// name the field of Config, or are those of OpenLedger.
func New(c Config) (*Egress, error) {
	c = c.withDefaults()
	e := &Egress{totals: map[Kind]Totals{}, clock: c.Clock}
	var err error
	if e.controlPlane, err = e.newClient(c, ControlPlane, c.ControlPlane); err != nil {
		return nil, fmt.Errorf("control plane URL: %w", err)
	}
	if c.Model != "" {
		if e.model, err = e.newClient(c, Model, c.Model); err != nil {
			return nil, fmt.Errorf("model URL: %w", err)
		}
	}
	if c.Ledger != "" {
		if e.ledger, err = OpenLedger(c.Ledger); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// errRedirect ends an exchange whose answer points elsewhere.
var errRedirect = errors.New("redirects are not followed: set the final URL in the configuration")

func (e *Egress) newClient(c Config, kind Kind, base string) (*http.Client, error) {
	d, err := parseDestination(base)
	if err != nil {
		return nil, err
	}
	next := c.Transport
	if next == nil {
		next = newTransport(d)
	}
	return &http.Client{
		Timeout:       c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
		Transport: &guard{
			egress: e, kind: kind, only: d, next: next, maxRequest: c.MaxRequest, maxResponse: c.MaxResponse,
		},
	}, nil
}

// ControlPlane returns the client that reaches the control plane and nothing
// else.
func (e *Egress) ControlPlane() *http.Client { return e.controlPlane }

// Model returns the client that reaches the customer's model and nothing else,
// or nil when there is no model.
func (e *Egress) Model() *http.Client { return e.model }

// Totals returns the counts since New.
func (e *Egress) Totals(kind Kind) Totals {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.totals[kind]
}

// Close closes idle connections and the log. Requests after it fail.
func (e *Egress) Close() error {
	e.controlPlane.CloseIdleConnections()
	if e.model != nil {
		e.model.CloseIdleConnections()
	}
	if e.ledger == nil {
		return nil
	}
	return e.ledger.Close()
}

// logEntry counts an entry and writes it to the log, if there is one.
func (e *Egress) logEntry(entry Entry) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	entry.Time = e.clock.Now()
	if e.ledger != nil {
		if err := e.ledger.Append(entry); err != nil {
			return err
		}
	}
	t := e.totals[entry.Kind]
	if entry.Event == Sent {
		t.Requests++
	}
	t.Out += entry.Out
	t.In += entry.In
	e.totals[entry.Kind] = t
	return nil
}
