package problem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/problem"
)

func TestFromGivesEveryFailureItsCode(t *testing.T) {
	t.Parallel()
	refused := func(codes ...admission.Code) error {
		e := &ledger.RefusedError{}
		for _, c := range codes {
			e.Decision.Reasons = append(e.Decision.Reasons, admission.Reason{Code: c, Message: string(c)})
		}
		return e
	}
	for want, tc := range map[string]struct {
		err    error
		status int
		whole  bool // the caller is told all there is
	}{
		contract.CodeNotFound:             {ledger.ErrNotFound, 404, true},
		contract.CodePermissionDenied:     {ledger.ErrDenied, 403, true},
		contract.CodeNameTaken:            {ledger.ErrTaken, 409, true},
		contract.CodeETagMismatch:         {ledger.ErrConflict, 412, true},
		contract.CodeIdempotencyKeyReused: {ledger.ErrKeyReused, 422, true},
		contract.CodeStateConflict:        {&ledger.StateError{Subject: "a", State: "b", Asked: "c"}, 409, true},
		contract.CodeValidationFailed:     {&ledger.InvalidError{Field: "gpus", Rule: "must be more"}, 422, true},
		contract.CodeUnknownTimeZone:      {&ledger.InvalidError{Field: "timezone", Rule: "is unknown"}, 422, true},
		contract.CodeQuotaExceeded:        {refused(admission.CapacityExhausted, admission.QuotaExceeded), 403, true},
		contract.CodeBudgetExceeded:       {refused(admission.BudgetExceeded), 403, true},
		contract.CodeSpendingExceeded:     {refused(admission.SpendingExceeded), 403, true},
		contract.CodeCapacityExhausted:    {refused(admission.CapacityExhausted), 409, true},
		contract.CodeRecovering:           {ledger.ErrRecovering, 409, true},
		contract.CodePoolBusy:             {ledger.ErrBusy, 503, false},
		contract.CodeUnavailable:          {ledger.ErrUnavailable, 503, false},
		contract.CodeStorageFull: {&ledger.StorageFullError{Where: "/data", Err: errors.New("hunter2")}, 507,
			false},
		contract.CodeTimeout:  {context.DeadlineExceeded, 504, false},
		contract.CodeInternal: {errors.New("password is hunter2"), 500, false},
	} {
		p, whole := problem.From(fmt.Errorf("doing it: %w", tc.err))
		require.Equal(t, want, p.Code)
		require.Equal(t, tc.status, p.Status, want)
		require.Equal(t, tc.whole, whole, want)
		require.NotContains(t, p.Detail, "hunter2")
		require.NotContains(t, p.Detail, p.Title, "the detail only repeats the title")
	}
}

func TestWhoeverMayNotExtendIsToldWhoMay(t *testing.T) {
	t.Parallel()
	p, whole := problem.From(fmt.Errorf("extending: %w", &ledger.NotHolderError{Allocation: "alc_1"}))
	require.True(t, whole)
	require.Equal(t, contract.CodePermissionDenied, p.Code)
	require.Contains(t, p.Detail, "alc_1")
	require.NotEmpty(t, p.Fixes)
}

// Offers are named as a way out only where there are any.
func TestOffersAreNamedOnlyWhereThereAreAny(t *testing.T) {
	t.Parallel()
	for _, code := range []admission.Code{admission.CapacityExhausted, admission.WorkloadShareExceeded} {
		e := &ledger.RefusedError{Decision: admission.Decision{Reasons: []admission.Reason{{Code: code,
			Message: "it is full"}}}}
		label, found := problem.FixFor(string(code), e)
		require.True(t, found)
		require.Equal(t, "Wait until something ends, or ask for fewer GPUs or a shorter time", label)
		e.Decision.Offers = []admission.Offer{{Pool: "pol_1"}}
		label, _ = problem.FixFor(string(code), e)
		require.Contains(t, label, "Take one of the offers")
		p, _ := problem.From(e)
		require.Equal(t, label, p.Fixes[0].Label)
	}
}

func TestWhatWasNotTriedMayBeSentAgain(t *testing.T) {
	t.Parallel()
	p, _ := problem.From(fmt.Errorf("booking: %w", ledger.ErrNotTried))
	require.Equal(t, contract.CodePoolBusy, p.Code)
	require.NotZero(t, p.RetryAfter)
	require.Contains(t, p.Detail, "not tried")
}

// Who asks for more nodes than there are is not sent away to ask for fewer GPUs, of which there are enough.
func TestTheWayOutOfAShapeIsWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	for want, reason := range map[string]admission.Reason{
		"Ask for fewer nodes, with more GPUs on each, or another pool":     {Limit: 4, Asked: 2},
		"Ask for fewer GPUs on each node, or fewer nodes, or another pool": {Limit: 16, Asked: 8},
		"Ask for fewer GPUs, or another pool":                              {Limit: 4, Asked: 5},
	} {
		reason.Code = admission.NoMatchingHardware
		e := &ledger.RefusedError{PerNode: 4, Decision: admission.Decision{Reasons: []admission.Reason{reason}}}
		label, _ := problem.FixFor(string(reason.Code), e)
		require.Equal(t, want, label)
	}
}

// What is free on a node that takes no new work has no place for anybody, and that is said.
func TestNodesThatTakeNoWorkAreNamed(t *testing.T) {
	t.Parallel()
	e := &ledger.RefusedError{Decision: admission.Decision{Reasons: []admission.Reason{{
		Code: admission.CapacityExhausted, Message: "pool lab has 3 GPUs free during the whole window; 1×1 has no place"}}},
		Closed: []ledger.ClosedNodes{{State: "draining", Nodes: 1}}}
	p, _ := problem.From(e)
	const want = "pool lab has 3 GPUs free during the whole window; 1×1 has no place; it has 1 draining node, " +
		"where nothing new starts"
	require.Equal(t, want, p.Detail)
	require.Equal(t, want, p.Blockers[0].Message)
}
