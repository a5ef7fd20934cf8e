package ledger

import "time"

// ShownPlan is what somebody was shown before they say yes: a request, and the
// effect that it would have had. It is applied only if it still has that effect.
type ShownPlan struct {
	ID             string
	OrganizationID string // empty: an operator's
	MadeBy         string // key id
	Kind           string
	Request        []byte // JSON
	Effect         []byte // JSON of Effect
	CreatedAt      time.Time
	ExpiresAt      time.Time
	AppliedAt      time.Time // zero: not applied
	Status         int       // of the answer
	Answer         []byte    // JSON; empty until it is applied
	Version        int
}
