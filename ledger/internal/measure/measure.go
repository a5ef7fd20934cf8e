// Package measure has the verbs of forecasts and their outcomes.
package measure

import (
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Forecasting is the verbs of what agents expected, and what came of it.
type Forecasting struct{ *txn.Engine }
