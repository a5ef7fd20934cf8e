package ledger

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/fairshare"
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
		return fmt.Sprintf("%s would have no place any more in pool %s", phrase.Count(len(e.Promises), "promise"),
			e.Pool)
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
	Speculative  quota.Spend  // speculative, of what starts today
}

// SumOf adds up what keys and schedules made or hold.
func (c *Commitments) SumOf(ids []string) *quota.Commitments {
	parts := make([]*quota.Commitments, len(ids))
	for i, id := range ids {
		parts[i] = c.ByKey[id]
	}
	return quota.Sum(parts)
}

// Account is whose use is counted: an organization's, or that of one of its users.
type Account struct {
	OrganizationID string
	UserID         string // empty: the organization
}

// AccountOf is the account that an allocation is charged to: its user's, and with it, the organization's.
func AccountOf(a allocation.Allocation) Account { return Account{a.OrganizationID, a.UserID} }

// CompareAccounts orders organizations, each before its users.
func CompareAccounts(a, b Account) int {
	return cmp.Or(cmp.Compare(a.OrganizationID, b.OrganizationID), cmp.Compare(a.UserID, b.UserID))
}

// PoolUse is what somebody has used of a pool, as fair share counts it: what a user has used, their organization has,
// too. What is still held is not in it; see shares.
type PoolUse struct {
	PoolID string
	Account
	Usage fairshare.Usage
}

// Share is an organization's part of a pool.
type Share struct {
	OrganizationID string
	Weight         int
	Share          float64         // weighted dominant share of decayed use
	Factor         float64         // how many times the idle time of its speculative reservations counts
	Usage          fairshare.Usage // with what is held at this moment
	Users          []UserShare     // the largest first
}

// UserShare is a user's part of what their organization has of a pool.
type UserShare struct {
	UserID string  // empty: keys that belong to nobody
	Share  float64 // measured as the organization's, of which it is a part
	Usage  fairshare.Usage
}
