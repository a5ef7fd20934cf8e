// Package report is what is read and explained: why a booking waits, what comes
// next, who has how much.
package report

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Reporting is the verbs of what is read and explained.
type Reporting struct{ *txn.Engine }
