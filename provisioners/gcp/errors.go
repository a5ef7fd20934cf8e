//go:build clouds

package gcp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/forewarm/forewarm/provisioners"
)

// attempt says what was being done when something failed.
type attempt struct {
	doing string
	scope string // of a stock-out: zone and machine type
	makes bool   // a failure that cannot be told may have made a machine
}

// callError turns any failure of a call into the port's error.
func (a attempt) callError(err error) error {
	var typed *provisioners.Error
	if errors.As(err, &typed) {
		return err
	}
	var answered *googleapi.Error
	if errors.As(err, &answered) {
		return a.refusalError(answered)
	}
	return &provisioners.Error{Kind: a.lostKind(err), Message: a.doing, Err: err}
}

// lostKind is the kind of a call that got no answer. A context may end it at any
// point, so that it tells nothing.
func (a attempt) lostKind(err error) provisioners.Kind {
	var asked *url.Error
	var sent *sentError
	switch {
	case isDialError(err):
		return provisioners.KindTransient
	case !errors.As(err, &asked), errors.As(err, &sent), asked.Timeout(), errors.Is(err, context.Canceled):
		return a.ambiguousKind()
	default: // it was not sent: the credentials were not to be had
		return provisioners.KindDenied
	}
}

func isDialError(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

func (a attempt) ambiguousKind() provisioners.Kind {
	if a.makes {
		return provisioners.KindUnknown
	}
	return provisioners.KindTransient
}

// refusalError is the error of an answer with a status other than success.
func (a attempt) refusalError(answer *googleapi.Error) error {
	reason := ""
	if len(answer.Errors) > 0 {
		reason = answer.Errors[0].Reason
	}
	refusal := &provisioners.Error{Kind: a.kindOf(answer.Code, reason),
		Message: a.doing + ": " + formatMessage(answer.Message, reason)}
	switch refusal.Kind {
	case provisioners.KindThrottled:
		refusal.RetryAfter = retryAfter(answer.Header)
	case provisioners.KindCapacity:
		refusal.Scope = a.scope
	case provisioners.KindQuota:
		refusal.Scope = quotaIn(answer.Message)
	}
	return refusal
}

// kindOf sorts a status and Google's reason for it.
func (a attempt) kindOf(status int, reason string) provisioners.Kind {
	if kind, known := reasonKinds[reason]; known {
		return kind
	}
	switch {
	case status == http.StatusTooManyRequests:
		return provisioners.KindThrottled
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return provisioners.KindDenied
	case status == http.StatusPreconditionFailed && a.makes: // a constraint of the organisation
		return provisioners.KindDenied
	case status == http.StatusBadRequest, status == http.StatusNotFound, status == http.StatusRequestEntityTooLarge:
		return provisioners.KindBadSpec
	default: // 5xx, 408, 409, and what nobody foresaw
		return a.ambiguousKind()
	}
}

// reasonKinds sorts the reasons that say more than their status.
var reasonKinds = map[string]provisioners.Kind{
	"rateLimitExceeded":         provisioners.KindThrottled,
	"userRateLimitExceeded":     provisioners.KindThrottled,
	"concurrentLimitExceeded":   provisioners.KindThrottled,
	"quotaExceeded":             provisioners.KindQuota,
	"limitExceeded":             provisioners.KindQuota,
	"stockout":                  provisioners.KindCapacity,
	"resourceNotReady":          provisioners.KindTransient,
	"resourceInUse":             provisioners.KindTransient,
	"zoneResourcePoolExhausted": provisioners.KindCapacity,
}

// operationKinds sorts the codes of errors inside operations: the first part
// that is in the code decides. By then Google has undone the insert, so nothing
// exists.
var operationKinds = []struct {
	part string
	kind provisioners.Kind
}{
	{"RATE_EXCEEDED", provisioners.KindThrottled},
	{"RATE_LIMIT", provisioners.KindThrottled},
	// A subnet is the account's own, and shared by a region's zones: neither time
	// nor another zone mends it.
	{"IP_SPACE_EXHAUSTED", provisioners.KindQuota},
	{"QUOTA", provisioners.KindQuota},
	{"LIMIT_EXCEEDED", provisioners.KindQuota},
	{"RESERVATION_NOT_FOUND", provisioners.KindBadSpec},
	{"RESERVATION_INCOMPATIBLE", provisioners.KindBadSpec},
	{"INVALID_RESERVATION", provisioners.KindBadSpec},
	{"RESERVATION", provisioners.KindCapacity}, // not ready, or all used
	{"EXHAUSTED", provisioners.KindCapacity},
	{"INSUFFICIENT_CAPACITY", provisioners.KindCapacity},
	{"STOCKOUT", provisioners.KindCapacity},
	{"UNAVAILABLE_IN_ZONE", provisioners.KindCapacity},
	{"PERMISSION", provisioners.KindDenied},
	{"FORBIDDEN", provisioners.KindDenied},
	{"SERVICE_ACCOUNT", provisioners.KindDenied},
	{"ACCESS_DENIED", provisioners.KindDenied},
	{"CONDITION_NOT_MET", provisioners.KindDenied},
	{"POLICY", provisioners.KindDenied},
	{"NOT_READY", provisioners.KindTransient},
	{"RESOURCE_IN_USE", provisioners.KindTransient},
	{"INTERNAL", provisioners.KindTransient},
	{"BACKEND_ERROR", provisioners.KindTransient},
	{"UNAVAILABLE", provisioners.KindTransient},
	{"TIMEOUT", provisioners.KindTransient},
	{"CANCEL", provisioners.KindTransient},
	{"CONFLICT", provisioners.KindTransient},
	{"INVALID", provisioners.KindBadSpec},
	{"UNSUPPORTED", provisioners.KindBadSpec},
	{"BAD_REQUEST", provisioners.KindBadSpec},
	{"NOT_FOUND", provisioners.KindBadSpec},
	{"REQUIRED", provisioners.KindBadSpec},
}

// operationError returns the error inside a finished operation, nil when it has none.
func (a attempt) operationError(op *compute.Operation) error {
	if op.Error == nil || len(op.Error.Errors) == 0 {
		return nil
	}
	cause := op.Error.Errors[0]
	failure := &provisioners.Error{Kind: provisioners.KindUnknown,
		Message: a.doing + ": " + formatMessage(cause.Message, cause.Code)}
	for _, row := range operationKinds {
		if strings.Contains(strings.ToUpper(cause.Code), row.part) {
			failure.Kind = row.kind
			break
		}
	}
	switch failure.Kind {
	case provisioners.KindCapacity:
		failure.Scope = a.scope
	case provisioners.KindQuota:
		failure.Scope = quotaOf(cause)
	}
	return failure
}

// quotaOf names the quota that an operation's error speaks of.
func quotaOf(cause *compute.OperationErrorErrors) string {
	for _, detail := range cause.ErrorDetails {
		if detail.QuotaInfo != nil && detail.QuotaInfo.MetricName != "" {
			return detail.QuotaInfo.MetricName
		}
	}
	if named := quotaIn(cause.Message); named != "" {
		return named
	}
	return cause.Code
}

// quotaIn finds the name in texts such as "Quota 'NVIDIA_H100_GPUS' exceeded."
func quotaIn(message string) string {
	parts := strings.SplitN(message, "'", 3)
	if len(parts) < 3 || !strings.Contains(strings.ToLower(parts[0]), "quota") {
		return ""
	}
	return parts[1]
}

func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, time.Hour)
}

const mostMessage = 500

// formatMessage joins a text and its code and bounds them: both come from outside.
func formatMessage(message, code string) string {
	if code != "" {
		message += " (" + code + ")"
	}
	if len(message) > mostMessage {
		message = message[:mostMessage]
	}
	return message
}

// notFound reports whether the service said that there is no such resource.
func notFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

func hasStatus(err error, statuses ...int) bool {
	var answer *googleapi.Error
	return errors.As(err, &answer) && slices.Contains(statuses, answer.Code)
}

func hasReason(err error, reason string) bool {
	var answer *googleapi.Error
	return errors.As(err, &answer) && slices.ContainsFunc(answer.Errors,
		func(e googleapi.ErrorItem) bool { return e.Reason == reason })
}
