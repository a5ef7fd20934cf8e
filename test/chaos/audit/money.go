package audit

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/test/chaos/site"
)

// account is what the ledger knows of one machine's money.
type account struct {
	owner string
	money.MicroUSD
}

// Accounts compares the bill with the ledger line by line. It explains a
// difference; whether there is one, the report of costs says, which is added up
// another way.
func (r Rows) Accounts(bill []site.Machine) []string {
	accounts := map[string][]account{}
	for _, n := range r.Nodes {
		if n.ProviderID != "" && !n.BilledFrom.IsZero() {
			accounts[n.ProviderID] = append(accounts[n.ProviderID],
				account{"node " + n.ID, n.Offering.Cost(n.BilledUntil.Sub(n.BilledFrom))})
		}
	}
	for _, o := range r.Orphans {
		accounts[o.Machine] = append(accounts[o.Machine],
			account{"orphan", o.Source.Cost(o.BilledUntil.Sub(o.BilledFrom))})
	}
	var wrong []string
	for _, m := range bill {
		known := accounts[m.ID]
		delete(accounts, m.ID)
		if len(known) == 1 && known[0].MicroUSD == m.Cost {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("machine %s of node %s, billed %s from %s to %s, is in the ledger as %s",
			m.ID, m.Node, m.Cost.Decimal(), m.From.Format(stamp), m.To.Format(stamp), formatAccounts(known)))
	}
	for id, known := range accounts {
		wrong = append(wrong, fmt.Sprintf("machine %s is in the ledger as %s, and the bill lacks it", id,
			formatAccounts(known)))
	}
	slices.Sort(wrong)
	return wrong
}

func formatAccounts(known []account) string {
	if len(known) == 0 {
		return "nothing"
	}
	out := ""
	for i, a := range known {
		if i > 0 {
			out += " and "
		}
		out += a.Decimal() + " of " + a.owner
	}
	return out
}
