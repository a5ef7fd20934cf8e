package operation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/server/problem"
)

// Change is an operation that writes. B is all that it asks, whatever carries it;
// T is what the ledger answers, and C how that goes over the wire.
type Change[B, T, C any] struct {
	Operation
	// Plan is the kind of plan that shows it before it is done; empty: none does.
	Plan string
	// Check refuses what cannot be asked, and puts ids for names. It changes nothing
	// else; nil: the ledger checks all.
	Check func(context.Context, Viewer, *B) error
	// Lock is what Run will lock, if that can be told: then it shares a transaction
	// with others. Nil: it cannot.
	Lock func(B) *ledger.LockHint
	// Count is how many requests it decides on; nil: one.
	Count func(B) int
	// Run calls verbs of the ledger that it is given, which may work in a transaction
	// of others.
	Run func(context.Context, *verbs.Ledger, ledger.Actor, B) (T, error)
	// StatusOf is the status of an answer; nil: Status.
	StatusOf func(T) int
	Encode   func(Viewer, T) C
}

// Request is what was asked, once it is checked.
type Request[B any] struct {
	asked B
	sent  []byte // what was sent, in JSON: the same request has the same
	hash  []byte // of that
}

// Viewer is who reads an answer, and when. A zero time is that of a plan, which
// must say the same whenever it is looked at.
type Viewer struct {
	Actor ledger.Actor
	Now   time.Time
}

// Answer is what a change answers.
type Answer[C any] struct {
	Status   int
	Body     C
	Replayed bool // it is the stored answer of the first such request
}

// Accept checks what is asked.
func (c Change[B, T, C]) Accept(ctx context.Context, v Viewer, b B) (Request[B], error) {
	canonical, err := EncodeJSON(&b, true)
	if err != nil {
		return Request[B]{}, fmt.Errorf("encoding the request: %w", err)
	}
	sum := sha256.Sum256(canonical)
	if c.Check != nil {
		err = c.Check(ctx, v, &b)
	}
	return Request[B]{asked: b, sent: canonical, hash: sum[:]}, err
}

// MayForward returns the request in JSON, if another server may decide it together
// with others: AnswerForwarded does so there.
func (c Change[B, T, C]) MayForward(r Request[B]) (sent []byte, ok bool) {
	return r.sent, c.SharesTransactions() && c.Lock(r.asked) != nil
}

// SharesTransactions reports whether such changes may share one transaction, and none of
// them is large.
func (c Change[B, T, C]) SharesTransactions() bool { return c.Lock != nil && c.Count == nil }

// Once does what was accepted at most once for each idempotency key. Without a key
// it just does it.
func (c Change[B, T, C]) Once(ctx context.Context, l *verbs.Ledger, v Viewer, key string,
	r Request[B]) (out Answer[C], err error) {
	if key == "" {
		out.Status, out.Body, err = c.call(ctx, l, v, r)
		return out, err
	}
	status, stored, replayed, err := c.onceStored(ctx, l, v, key, r, &out.Body)
	if err != nil {
		return Answer[C]{}, err
	}
	if out.Status, out.Replayed = status, replayed; !replayed {
		return out, nil
	}
	var body C // what the call may have left in out was rolled back
	if err := DecodeJSON(stored, &body); err != nil {
		return Answer[C]{}, fmt.Errorf("decoding the stored answer: %w", err)
	}
	out.Body = body
	return out, nil
}

// onceStored is Once, and returns the answer as it is stored. into gets the answer
// of a call, also of one that is rolled back.
func (c Change[B, T, C]) onceStored(ctx context.Context, l *verbs.Ledger, v Viewer, key string, r Request[B],
	into *C) (status int, stored []byte, replayed bool, err error) {
	once := ledger.Once{Route: c.Template(), Key: key, Hash: r.hash}
	if c.Lock != nil {
		once.LockHint = c.Lock(r.asked)
	}
	if c.Count != nil {
		once.Load = c.Count(r.asked)
	}
	return l.Once(ctx, v.Actor, once, func(ctx context.Context, l *verbs.Ledger) (status int, body []byte, err error) {
		if status, *into, err = c.call(ctx, l, v, r); err != nil {
			return 0, nil, err
		}
		body, err = EncodeJSON(into, true)
		return status, body, err
	})
}

// AnswerForwarded is Once of a request that another server has accepted, in JSON both
// ways.
func (c Change[B, T, C]) AnswerForwarded(ctx context.Context, l *verbs.Ledger, v Viewer, key string, sent []byte) (
	status int, answer []byte, replayed bool, err error) {
	r := Request[B]{sent: sent}
	if err := DecodeJSON(sent, &r.asked); err != nil {
		return 0, nil, false, fmt.Errorf("decoding a request of another server: %w", err)
	}
	sum := sha256.Sum256(sent)
	r.hash = sum[:]
	if c.Check != nil {
		if err := c.Check(ctx, v, &r.asked); err != nil {
			return 0, nil, false, err
		}
	}
	var body C
	if key != "" {
		return c.onceStored(ctx, l, v, key, r, &body)
	}
	if status, body, err = c.call(ctx, l, v, r); err != nil {
		return 0, nil, false, err
	}
	answer, err = EncodeJSON(&body, true)
	return status, answer, false, err
}

// Do does what is asked, however often it is asked.
func (c Change[B, T, C]) Do(ctx context.Context, l *verbs.Ledger, v Viewer, b B) (C, error) {
	r, err := c.Accept(ctx, v, b)
	if err != nil {
		var none C
		return none, err
	}
	_, body, err := c.call(ctx, l, v, r)
	return body, err
}

// DryRun answers what the request would be answered, and changes nothing. Ids in
// the answer are given to nothing.
func (c Change[B, T, C]) DryRun(ctx context.Context, l *verbs.Ledger, v Viewer, b B) (out Answer[C], err error) {
	run, err := c.ForLedger(ctx, v, b)
	if err != nil {
		return out, err
	}
	_, answer, err := l.DryRun(ctx, v.Actor, run)
	if err != nil {
		return out, err
	}
	out.Status = http.StatusOK
	if err := json.Unmarshal(answer, &out.Body); err != nil {
		return out, fmt.Errorf("decoding what a dry run answered: %w", err)
	}
	return out, nil
}

// ForLedger is the request as the ledger runs it where it must answer the same
// whenever it runs: in a dry run, a plan and an explanation.
func (c Change[B, T, C]) ForLedger(ctx context.Context, v Viewer, b B) (verbs.Operation, error) {
	r, err := c.Accept(ctx, v, b)
	if err != nil {
		return nil, err
	}
	v.Now = time.Time{}
	return func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
		status, body, err := c.call(ctx, l, v, r)
		if err != nil {
			return 0, nil, err
		}
		answer, err := json.Marshal(body)
		return status, answer, err
	}, nil
}

// Planned is ForLedger of a request in JSON, which fits the schema of B.
func (c Change[B, T, C]) Planned(ctx context.Context, v Viewer, request []byte) (verbs.Operation, error) {
	var b B
	if err := json.Unmarshal(request, &b); err != nil {
		if p, ok := problem.Unreadable("request.", err); ok {
			return nil, p
		}
		return nil, problem.Invalid("request", "must be the body of the kind's own route", "")
	}
	return c.ForLedger(ctx, v, b)
}

// call runs a request and encodes what came of it.
func (c Change[B, T, C]) call(ctx context.Context, l *verbs.Ledger, v Viewer, r Request[B]) (int, C, error) {
	got, err := c.Run(ctx, l, v.Actor, r.asked)
	if err != nil {
		var none C
		return 0, none, err
	}
	status := cmp.Or(c.Status, http.StatusOK)
	if c.StatusOf != nil {
		status = c.StatusOf(got)
	}
	return status, c.Encode(v, got), nil
}
