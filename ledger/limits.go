package ledger

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/quota"
)

// ReasonQuotaReduced is why a promise is degraded that new limits do not allow.
const ReasonQuotaReduced = "quota_reduced"

// AtRisk is a promise that limits do not allow, or that a smaller pool has no
// place for.
type AtRisk struct {
	ID             string // of a reservation or an allocation
	OrganizationID string
	PoolID         string
	Shape          capacity.Shape
	Window         calendar.Interval
	Violations     []quota.Violation
	Lost           []admission.Reason // why it would have no place
}

// PromisesAtRiskError says that limits were not changed, or a pool was not made
// smaller, because of the promises that this would break.
type PromisesAtRiskError struct {
	Pool     string // its name; empty: limits
	Promises []AtRisk
}

// Error says how many there are.
func (e *PromisesAtRiskError) Error() string {
	if e.Pool != "" {
		return fmt.Sprintf("%s would have no place any more in pool %s", phrase.Count(len(e.Promises), "promise"), e.Pool)
	}
	return fmt.Sprintf("%s would be beyond the new limits", phrase.Count(len(e.Promises), "promise"))
}

// LimitsChange is what a change of limits did.
type LimitsChange struct {
	Organization Organization
	Degraded     []AtRisk // promises that the new limits do not allow, and the old ones did
	Restored     []string // reservations that are within the limits again
}

// Usage is what an organization holds and is promised, as its limits count it.
type Usage struct {
	Organization Organization
	At, Until    time.Time
	Now          quota.Vector
	Peak         quota.Vector // the most of each at any one instant from At to Until
	Period       quota.Spend  // of what starts in the present period
	Guessed      quota.Spend  // speculative, of what starts today
}
