package provisioners

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind sorts a provider's failures by what the caller must do next.
type Kind string

// The kinds of failure.
const (
	KindNotFound  Kind = "not_found" // no such machine, said by the provider
	KindCapacity  Kind = "capacity"  // out of stock: try elsewhere or later; nothing was made
	KindQuota     Kind = "quota"     // the account's limit: stop and tell its owner; nothing was made
	KindThrottled Kind = "throttled" // slow down: repeat after RetryAfter with the same token
	KindBadSpec   Kind = "bad_spec"  // can never work; nothing was made
	KindDenied    Kind = "denied"    // credentials or rights; nothing was made
	KindTransient Kind = "transient" // repeat with the same token; nothing was made
	KindUnknown   Kind = "unknown"   // a machine may exist: repeat with the same token
)

// Known reports whether k is one of the kinds above.
func (k Kind) Known() bool {
	switch k {
	case KindNotFound, KindCapacity, KindQuota, KindThrottled, KindBadSpec, KindDenied, KindTransient, KindUnknown:
		return true
	default:
		return false
	}
}

// Error is a provider's failure. Scope narrows what it speaks of, for example
// the zone that is out of stock or the name of the quota; Message is the
// provider's own text, shown to operators and never parsed.
type Error struct {
	Kind       Kind
	Scope      string
	Message    string
	RetryAfter time.Duration // with KindThrottled: not before this
	Err        error
}

// Error renders kind, scope and message.
func (e *Error) Error() string {
	text := string(e.Kind)
	if e.Scope != "" {
		text += " (" + e.Scope + ")"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of the kind.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of err. An error that is not typed is KindUnknown: the
// one kind after which nothing may be assumed.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindUnknown
}

// Final reports whether err says for sure that no machine was made and that
// repeating the call will not help.
func Final(err error) bool {
	switch KindOf(err) {
	case KindCapacity, KindQuota, KindBadSpec, KindDenied:
		return true
	default:
		return false
	}
}

// Ended returns an error when the context has already ended, nil otherwise. An
// adapter calls it before anything else, which is what makes KindTransient
// true: nothing was asked of the provider.
func Ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &Error{Kind: KindTransient, Message: "not started", Err: err}
	}
	return nil
}
