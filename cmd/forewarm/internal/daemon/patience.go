package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/worker/queue/asynqueue"
)

// Bounds of waiting for a service that is away.
const (
	firstPause = 250 * time.Millisecond
	longPause  = 5 * time.Second
	tryTime    = 10 * time.Second // of one attempt: a host may swallow what it is sent
	sayEvery   = 30 * time.Second
)

// forever is the patience of what has nothing else to do.
const forever patience = -1

// patience is how long a start waits for the database and Redis. Zero: it tries
// once. It is the value of a flag.
type patience time.Duration

// String writes it as Set reads it.
func (p *patience) String() string {
	if *p == forever {
		return "forever"
	}
	return phrase.Length(time.Duration(*p))
}

// Set reads a duration, or "forever".
func (p *patience) Set(text string) error {
	if text == "forever" {
		*p = forever
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New(`want a duration such as 90s, or "forever"`)
	}
	*p = patience(d)
	return nil
}

// Type names the value in help texts.
func (p *patience) Type() string { return "duration" }

// AwayError says that a service could not be reached for as long as was to be
// waited. It hides its cause from errors.As, by which people's commands advise to start a
// server.
type AwayError struct {
	Service string // what, and where it should be
	Waited  time.Duration
	cause   error
}

// Error says what is missing and what to do.
func (e *AwayError) Error() string {
	after := ""
	if e.Waited >= time.Second {
		after = fmt.Sprintf(" after %v", e.Waited.Round(time.Second))
	}
	return fmt.Sprintf("%s cannot be reached%s: %s; start it, or correct its URL", e.Service, after,
		httpx.DescribeFailure(e.cause, "its address"))
}

// service is something that a start needs: its name and address, without
// secrets, and whoever should know that it is waited for.
type service struct {
	name    string
	log     *slog.Logger
	missing func(what string) // is told what is waited for; nil: nobody asks
}

// awaitService tries until it works, fails for good, or the patience is over. It
// returns the context's error if that ends first.
func (p patience) awaitService(ctx context.Context, s service, try func(context.Context) error) error {
	began, said, pause := time.Now(), time.Time{}, firstPause
	for {
		err := tryOnce(ctx, try)
		waited := time.Since(began)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			if !said.IsZero() {
				s.log.InfoContext(ctx, "found "+s.name, "waited", waited.Round(time.Millisecond))
			}
			return nil
		case !isTransient(err):
			return err
		case p != forever && waited >= time.Duration(p):
			return &AwayError{Service: s.name, Waited: waited, cause: err}
		}
		if s.missing != nil {
			s.missing(s.name)
		}
		if now := time.Now(); said.IsZero() || now.Sub(said) >= sayEvery {
			s.log.WarnContext(ctx, "waiting for "+s.name, "error", httpx.DescribeFailure(err, "its address"))
			said = now
		}
		next := pause/2 +
			rand.N(pause/2) //nolint:gosec,forbidigo // many processes start at once: they should not knock together
		if p != forever {
			next = min(next, time.Duration(p)-waited)
		}
		pause = min(2*pause, longPause)
		select {
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
}

func tryOnce(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	return try(ctx)
}

// isTransient reports whether an error may be gone at the next attempt: nobody
// answers, or the service is still starting. What it answered is final.
func isTransient(err error) bool {
	var certificate *tls.CertificateVerificationError
	return !errors.As(err, &certificate) &&
		(errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, asynqueue.ErrUnreachable) ||
			errors.Is(err, context.DeadlineExceeded))
}
