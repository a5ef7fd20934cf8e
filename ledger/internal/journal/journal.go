// Package journal is the verbs that seal what happened, and that verify it.
package journal

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Journal is the verbs of the sealed record of what happened.
type Journal struct{ *txn.Engine }
