package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/ledger"
)

type costRow struct {
	Payer, For, Hours, Amount, Share string
}

type orphanRow struct {
	Machine, Provisioner, Node, Age, Cost string
}

// addMoney fills what machines cost, by payer and cause, and the machines that no
// node stands for, which only an operator sees.
func (v *view) addMoney(r ledger.Reader, s ledger.Scope, now time.Time) error {
	costs, err := r.Costs(s, now.Add(-period), now)
	if err != nil {
		return fmt.Errorf("dividing costs: %w", err)
	}
	if err := v.addCosts(r, s, costs); err != nil {
		return err
	}
	if !s.All {
		return nil
	}
	orphans, err := r.Orphans(ledger.OrphanFilter{Billed: true})
	if err != nil {
		return fmt.Errorf("listing orphans: %w", err)
	}
	for _, o := range orphans {
		v.Orphans = append(v.Orphans, orphanRow{Machine: o.Machine, Provisioner: o.Source.Provisioner, Node: o.NodeID,
			Age: formatSpan(now.Sub(o.BilledFrom)), Cost: o.Source.Cost(now.Sub(o.BilledFrom)).String()})
	}
	return nil
}

func (v *view) addCosts(r ledger.Reader, s ledger.Scope, costs ledger.Costs) error {
	type account struct {
		payer cost.Payer
		of    string
	}
	total := costs.Total()
	at := map[account]int{}
	var sums []ledger.CostLine
	for _, l := range costs.Lines {
		a := account{l.Payer, l.OrganizationID + string(l.Cause)}
		i, known := at[a]
		if !known {
			i, at[a] = len(sums), len(sums)
			sums = append(sums,
				ledger.CostLine{Charge: cost.Charge{Payer: l.Payer, OrganizationID: l.OrganizationID, Cause: l.Cause}})
		}
		sums[i].GPUTime += l.GPUTime
		sums[i].Amount += l.Amount
	}
	for _, l := range sums {
		what := codeWords(string(l.Cause))
		if l.Payer == cost.Tenant {
			o, err := r.Organization(s, l.OrganizationID)
			if err != nil {
				return fmt.Errorf("reading who pays: %w", err)
			}
			what = o.Name
		}
		v.Costs = append(v.Costs, costRow{Payer: codeWords(string(l.Payer)), For: what,
			Hours: fmt.Sprintf("%.2f", l.GPUTime.Hours()), Amount: l.Amount.String(), Share: shareOf(l.Amount, total)})
	}
	return nil
}

func codeWords(code string) string { return strings.ReplaceAll(code, "_", " ") }

func shareOf(amount, total money.MicroUSD) string {
	if total == 0 {
		return ""
	}
	return formatPercent(float64(amount) / float64(total))
}
