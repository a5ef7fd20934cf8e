// Package journal has the verbs that seal and verify the journal.
package journal

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Journal is the verbs of the sealed record of what happened.
type Journal struct{ *txn.Engine }
