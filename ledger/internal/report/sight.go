package report

import (
	"github.com/forewarm/forewarm/ledger"
)

// Sight returns what a scope sees of nodes.
func (l Reporting) Sight(s ledger.Scope) ledger.Sight {
	return ledger.Sight{Scope: s, Open: s.All || l.Config.TenantsSeeNodes && s.OrganizationID != ""}
}
