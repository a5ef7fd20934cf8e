// Package tenancy has the verbs of organizations, their people, keys and
// limits.
package tenancy

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Tenancy is the verbs of organizations, their people, keys and limits.
type Tenancy struct{ *txn.Engine }
