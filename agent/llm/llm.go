// Package llm asks the customer's own language model.
//
// Model is the port. It is one question and one answer: no tools, no
// conversation, no streaming. An adapter makes exactly one call per Ask, never
// retries, never waits, and returns a typed *Error; whether and when to ask
// again is the caller's choice, because every call costs money. What an adapter
// returns is hostile text: the caller checks all of it before use.
//
// Budget stands between a caller and a Model and keeps the spending of a day
// below its caps.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Model answers a prompt. Implementations are safe for concurrent use.
type Model interface {
	// Ask makes one call. It returns ctx's error, wrapped, when ctx ends first.
	Ask(ctx context.Context, r Request) (Reply, error)
}

// Request is one question.
type Request struct {
	System     string
	User       string
	SchemaName string          // letters, digits, _ and -
	Schema     json.RawMessage // JSON schema of the answer, which the model is asked to keep to strictly
	MaxTokens  int             // of the answer; at least 1
}

// Reply is the answer to one question. Nothing in it can be trusted.
type Reply struct {
	Text             string
	Model            string // as the server named it
	PromptTokens     int    // as the server counted; 0 or less if it did not say
	CompletionTokens int
}

// Kind sorts failures by what the caller can do.
type Kind string

// The kinds of failure.
const (
	KindUnavailable Kind = "unavailable" // no answer came, or a 5xx: later may work
	KindThrottled   Kind = "throttled"   // 429: not before RetryAfter
	KindDenied      Kind = "denied"      // the key, the model's name or the request is refused: a person must act
	KindRefused     Kind = "refused"     // the model declined to answer
	KindInvalid     Kind = "invalid"     // an answer came, but not one that can be used
	KindBudget      Kind = "budget"      // not asked: a cap of the day is reached
	KindBreaker     Kind = "breaker"     // not asked: too many failures, not before RetryAfter
)

// Error is a failed Ask. It holds no text of the server or the model.
type Error struct {
	Kind       Kind
	Status     int           // HTTP status, 0 if there was none
	RetryAfter time.Duration // not before this; 0 if unknown
	Err        error         // the cause; may be nil
}

// Error renders kind, status and cause.
func (e *Error) Error() string {
	text := "language model " + string(e.Kind)
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsUnanswered reports whether a failed Ask leaves the question as if nobody had been asked: the same question may
// be answered later. What the model declined or answered wrongly is no such failure, nor a request that is refused
// for what it says.
func IsUnanswered(err error) bool {
	switch KindOf(err) {
	case KindUnavailable, KindThrottled, KindBudget, KindBreaker:
		return err != nil
	case KindDenied:
		var e *Error
		return errors.As(err, &e) && (e.Status == 401 || e.Status == 402 || e.Status == 403 || e.Status == 404)
	default:
		return false
	}
}

// RetryAfterOf is how long err says to wait, 0 if it does not.
func RetryAfterOf(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// KindOf returns the kind of err; KindUnavailable if it is not typed.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindUnavailable
}
