package report

import (
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/wait"
)

// Waits returns estimates on what r reads.
func (l Reporting) Waits(r ledger.Reader) *wait.Waits { return wait.NewWaits(l.Config, r) }
