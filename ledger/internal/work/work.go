// Package work has the verbs of tasks: the work that other verbs cause,
// claimed, extended and done.
package work

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Tasks is the verbs of the work that verbs cause: claimed, extended, done.
type Tasks struct{ *txn.Engine }
