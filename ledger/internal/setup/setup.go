// Package setup is the first start of an installation.
package setup

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Setup is the verbs of the first start of an installation.
type Setup struct{ *txn.Engine }
