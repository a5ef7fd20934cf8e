package report

import (
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/fleet"
)

// Troubles reads what fails again and again.
func (l Reporting) Troubles(r ledger.Reader) (ledger.Troubles, error) { return fleet.ReadTroubles(r) }
