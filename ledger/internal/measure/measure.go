// Package measure is the verbs of forecasts: what was expected, and what came of
// it.
package measure

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Forecasting is the verbs of what agents expected, and what came of it.
type Forecasting struct{ *txn.Engine }
