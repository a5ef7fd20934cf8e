package ledger

import (
	"time"
)

// AuditRequest asks for a part of the journal to be compared with its seals.
type AuditRequest struct {
	After Anchor // the last seal that was checked; zero: begin with the first
	Known Anchor // a seal that must be in the chain; zero: none
	Limit int    // of seals; zero or more than auditMost: auditMost
}

// Audit is what one part of the journal was found to be.
type Audit struct {
	Seals, Events int
	Last          Seal // the last one that holds; zero: none
	More          bool // there are seals after it
	Newest        int64
	Finding       *AuditFinding // the first thing that is not as it was sealed; nil: none

	// Of what no seal covers yet, when there is no more: its oldest event's time.
	Unsealed      int64
	UnsealedSince time.Time
}

// Kinds of findings.
const (
	AuditChanged     = "event-changed"
	AuditMissing     = "event-missing"
	AuditInserted    = "event-inserted"
	AuditReordered   = "event-reordered"
	AuditSealChanged = "seal-changed"
	AuditSealMissing = "seal-missing"
	AuditOtherKey    = "other-key"
	AuditAnchor      = "anchor-differs"
	AuditBehind      = "seals-behind"
	AuditUnsealed    = "not-sealed"
)

// AuditFinding is one thing that is not as it was sealed.
type AuditFinding struct {
	Kind  string
	Seal  int64 // 0: it is the journal as a whole
	Event int64 // 0: it is the seal
	What  string
}
