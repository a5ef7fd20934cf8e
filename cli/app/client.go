package app

import (
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
)

// NewClient returns the SDK for the chosen server.
func (a *App) NewClient() (*client.Client, error) {
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	c, err := client.New(t.Server, t.Key, a.NewDoer(time.Minute))
	if err != nil {
		return nil, &exit.Error{Code: exit.Usage, Message: err.Error(),
			Next: []string{"forewarm status --server " + contextfile.DefaultServer}}
	}
	return c, nil
}

// patience is how long a busy server is waited for, all in all.
const patience = 30 * time.Second

// NewDoer sends requests: again when a busy server asks to wait, and in a dry run
// none that changes something.
func (a *App) NewDoer(timeout time.Duration) client.Doer {
	var d client.Doer = httpx.NewClient(httpx.Config{Timeout: timeout, MaxBody: 32 << 20, UserAgent: a.UserAgent(),
		Transport: httpx.NewGuardedTransport()})
	if a.Flags.DryRun {
		d = dryRunDoer{d}
	}
	return client.Patient{Next: interruptDoer{slowDoer{d, a}}, Wait: a.Pause, Limit: patience, OnWait: a.tellWait}
}

// NewStreamClient is a client whose answers do not end.
func (a *App) NewStreamClient() (*client.Client, error) {
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	return client.New(t.Server, t.Key,
		httpx.NewClient(httpx.Config{Timeout: -1, MaxBody: -1, UserAgent: a.UserAgent(),
			Transport: httpx.NewGuardedTransport()}))
}

// NewSessionClient sends the handshakes of sessions, which then last as long as they may.
func (a *App) NewSessionClient() *http.Client {
	return httpx.NewClient(httpx.Config{Timeout: -1, MaxBody: -1, UserAgent: a.UserAgent(),
		Transport: httpx.NewGuardedTransport()})
}

// UserAgent is what the program calls itself in requests.
func (a *App) UserAgent() string { return "forewarm-cli/" + a.Version }

// WithIdempotencyKey prepares a context for a request that changes something.
func (a *App) WithIdempotencyKey(ctx context.Context) context.Context {
	if a.Flags.IdempotencyKey == "" {
		return ctx
	}
	return client.WithIdempotencyKey(ctx, a.Flags.IdempotencyKey)
}

// tellWait says why nothing seems to happen.
func (a *App) tellWait(d time.Duration, why contract.Problem) {
	if a.OnWait != nil {
		a.OnWait(d, why)
	}
}

// WaitsFor says what a server that asks to wait lacks.
func WaitsFor(why contract.Problem) string {
	switch why.Code {
	case contract.CodeUnavailable:
		return "The server's database does not answer"
	case contract.CodePoolBusy:
		return "Somebody else is changing the same thing"
	case contract.CodeRateLimited:
		return "Too many requests at once"
	}
	return "The server is busy"
}
