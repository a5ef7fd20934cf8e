package tasks

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"github.com/forewarm/forewarm/contract"
	forewarmv1 "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
	"github.com/forewarm/forewarm/server/inward"
	"github.com/forewarm/forewarm/server/problem"
)

// Refusal is a problem as a call is answered with it.
func Refusal(p *problem.Problem) *connect.Error {
	err := connect.NewError(codeOf(p), errors.New(p.Detail))
	told := &forewarmv1.Problem{Code: p.Code, Detail: p.Detail, RequestId: p.RequestID,
		RetryAfterSeconds: int32(p.RetryAfter)} //nolint:gosec // seconds, of which there are few
	for _, f := range p.Errors {
		told.Fields = append(told.Fields, &forewarmv1.FieldProblem{Field: f.Pointer, Code: f.Code, Message: f.Message})
	}
	for _, f := range p.Fixes {
		told.Fixes = append(told.Fixes, f.Label)
	}
	if detail, err2 := connect.NewErrorDetail(told); err2 == nil {
		err.AddDetail(detail)
	}
	return err
}

// codes are those of problems whose status does not tell.
var codes = map[string]connect.Code{
	contract.CodePermissionDenied:     connect.CodePermissionDenied,
	contract.CodeNameTaken:            connect.CodeAlreadyExists,
	contract.CodeIdempotencyKeyReused: connect.CodeAlreadyExists,
	contract.CodeCapacityExhausted:    connect.CodeResourceExhausted,
	contract.CodeNoMatchingHardware:   connect.CodeFailedPrecondition,
	contract.CodeQueueFull:            connect.CodeResourceExhausted,
	contract.CodeStorageFull:          connect.CodeUnavailable,
}

// codeOf is what a call fails with. A refusal that a repetition does not change is none that
// clients repeat by themselves.
func codeOf(p *problem.Problem) connect.Code {
	if code, ok := codes[p.Code]; ok {
		return code
	}
	switch p.Status {
	case http.StatusUnauthorized:
		return connect.CodeUnauthenticated
	case http.StatusForbidden, http.StatusTooManyRequests: // a quota, a budget or a rate
		return connect.CodeResourceExhausted
	case http.StatusNotFound:
		return connect.CodeNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return connect.CodeFailedPrecondition
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return connect.CodeDeadlineExceeded
	case http.StatusNotImplemented:
		return connect.CodeUnimplemented
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	case http.StatusInternalServerError:
		return connect.CodeInternal
	}
	return connect.CodeInvalidArgument
}

// refused is any failure of a call, as it is answered.
func (s *service) refused(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if told, ok := errors.AsType[*connect.Error](err); ok {
		return told
	}
	p, told := problem.From(err)
	if !told {
		s.Log.ErrorContext(ctx, "call failed", "error", err)
	}
	return Refusal(inward.About(ctx, p))
}
