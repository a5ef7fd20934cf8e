// Package fleet has the verbs of pools and nodes: what operators define, what
// the planner decides, and what provisioners report.
package fleet

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Fleet is the verbs of pools, their nodes, and what provisioners report.
type Fleet struct{ *txn.Engine }
