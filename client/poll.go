package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
)

const (
	lookEvery    = time.Second      // between two looks at what is waited for
	longestPause = 15 * time.Second // between two attempts to reach a server
	roomEvery    = 5 * time.Second  // between two questions whether there is room
)

// ErrTimeUp says that what was waited for was not there in time. It goes on.
var ErrTimeUp = errors.New("the time to wait is up")

// Poll waits for what takes longer than a request: it looks again and again. The zero value
// waits as long as its context lasts.
type Poll struct {
	// Deadline is when to give up; zero: never. There is a last look then.
	Deadline time.Time
	// Now tells the time; nil: time.Now.
	Now func() time.Time
	// Pause waits, or less when the context ends; then it returns the reason. Nil: in real time.
	Pause func(context.Context, time.Duration) error
	// OnBroken, if it is there, is told of the first of several failures in a row that may pass.
	OnBroken func(error)
	// OnRefused, if it is there, is told of each refusal for want of room.
	OnRefused func(error)
}

// Until looks until a look says that it is done, or fails for good. A server that does not
// answer, or asks to come again, is asked again, ever later. At the deadline the error is
// ErrTimeUp, and wraps what the last look failed with, if it did.
func (p Poll) Until(ctx context.Context, look func(context.Context) (done bool, err error)) error {
	for failures := 0; ; {
		done, err := look(ctx)
		switch {
		case err == nil && done:
			return nil
		case err == nil:
			failures = 0
		case !IsTransient(err) || ctx.Err() != nil:
			return err
		default:
			if failures == 0 && p.OnBroken != nil {
				p.OnBroken(err)
			}
			failures++
		}
		if p.isOver() {
			return errors.Join(ErrTimeUp, err)
		}
		if err := p.pause(ctx, httpx.Backoff(failures, lookEvery, longestPause, nil)); err != nil {
			return err
		}
	}
}

// Asker asks for GPUs, as Client.Allocate does.
type Asker func(context.Context, contract.AllocationCreate, Options) (contract.Allocation, error)

// Allocate asks for GPUs, and while others hold them asks again until there is room. What it asks
// in between are dry runs, which leave no refusals in the journal; it is no place in a queue, but
// the time counts as a wait of the allocation, unless the context has an idempotency key, which
// stands for one request. At the deadline the error is ErrTimeUp, and wraps the last refusal.
func (p Poll) Allocate(ctx context.Context, in contract.AllocationCreate, ask Asker) (contract.Allocation, error) {
	began := p.Time()
	for {
		got, err := ask(ctx, in, Options{})
		if !IsNoRoom(err) {
			return got, err
		}
		if err := p.awaitRoom(ctx, in, ask, err); err != nil {
			return got, err
		}
		if ctx.Value(idempotencyKey{}) == nil {
			in.WaitedSeconds = int64(p.Time().Sub(began) / time.Second)
		}
	}
}

func (p Poll) awaitRoom(ctx context.Context, in contract.AllocationCreate, ask Asker, refused error) error {
	ctx = WithIdempotencyKey(ctx, "") // a question has a key of its own
	for err := refused; err != nil; _, err = ask(ctx, in, Options{DryRun: true}) {
		if IsNoRoom(err) {
			refused = err
		} else if !IsTransient(err) {
			return err
		}
		if p.OnRefused != nil {
			p.OnRefused(refused)
		}
		if p.isOver() {
			return errors.Join(ErrTimeUp, refused)
		}
		if err := p.pause(ctx, roomEvery); err != nil {
			return err
		}
	}
	return nil
}

// Time is what Now tells.
func (p Poll) Time() time.Time {
	if p.Now == nil {
		return time.Now() //nolint:forbidigo // with its monotonic part: what is measured is how long this waits
	}
	return p.Now()
}

func (p Poll) isOver() bool { return !p.Deadline.IsZero() && !p.Time().Before(p.Deadline) }

// pause waits for a time, and no longer than to the deadline, if that is not all but there.
func (p Poll) pause(ctx context.Context, d time.Duration) error {
	if !p.Deadline.IsZero() {
		d = min(d, max(lookEvery, p.Deadline.Sub(p.Time())))
	}
	return p.Wait(ctx, d)
}

// Wait pauses once, or less when the context ends; then it returns the reason.
func (p Poll) Wait(ctx context.Context, d time.Duration) error {
	if p.Pause != nil {
		return p.Pause(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// IsNoRoom reports whether a request was refused because others hold what it wants.
func IsNoRoom(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Problem.Code == contract.CodeCapacityExhausted
}

// IsTransient reports whether a request that failed may succeed in a moment: the server said
// so, or did not answer.
func IsTransient(err error) bool {
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused.Problem.Retryable
	}
	_, asked := errors.AsType[*url.Error](err)
	_, forged := errors.AsType[*tls.CertificateVerificationError](err)
	name, unknown := errors.AsType[*net.DNSError](err)
	return asked && !forged && !(unknown && name.IsNotFound)
}
