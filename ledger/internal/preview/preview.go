// Package preview has the verbs that try a request: dry runs, and plans that
// are shown and applied.
package preview

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Previews is the verbs of what a request would do: dry runs, and plans that are applied.
type Previews struct{ *txn.Engine }
