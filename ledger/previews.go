package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Preview is what somebody was shown before they say yes: a request, and the
// effect that it would have had. It is applied only if it still has that effect.
type Preview struct {
	ID             string
	OrganizationID string // empty: an operator's
	MadeBy         string // key id
	Kind           string
	Request        []byte // JSON
	Effect         []byte // JSON, as it was shown
	Fingerprint    string // of the effect: see Effect.Mark
	CreatedAt      time.Time
	ExpiresAt      time.Time
	AppliedAt      time.Time // zero: not applied
	Status         int       // of the answer
	Answer         []byte    // JSON; empty until it is applied
	Version        int
}

// ErrPlanExpired says that the plan is too old to be applied.
var ErrPlanExpired = errors.New("the plan has expired")

// PlanStaleError says that a plan would no longer do what was shown. Err is what
// stands in the way now, or nil when the request succeeds with another effect.
type PlanStaleError struct {
	PlanID  string
	Err     error
	Changes []string // what would be otherwise than it was shown, in words; none with Err
}

// Error names the plan and what stands in the way.
func (e *PlanStaleError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s does not hold any more: %s", e.PlanID, e.Err)
	}
	return e.PlanID + " would no longer do what it showed: now " + strings.Join(e.Changes, "; ")
}

// Unwrap returns what stands in the way.
func (e *PlanStaleError) Unwrap() error { return e.Err }
