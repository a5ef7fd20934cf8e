package api

import (
	"context"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/auth"
	"github.com/forewarm/forewarm/server/operation"
)

func reportEndpoints(a *API) []endpoint {
	return []endpoint{
		serve(a, operation.Operation{ID: "costs", Method: http.MethodGet, Path: "/reports/costs", Tag: "journal",
			Policy: auth.Viewer, Summary: "What machines cost in a period, by payer and cause"}, reportCosts),
		serve(a, operation.Operation{ID: "summary", Method: http.MethodGet, Path: "/reports/summary", Tag: "journal",
			Policy: auth.Viewer, Summary: "Zero-wait rate and idle waste of a period"}, reportSummary),
	}
}

func reportCosts(ctx context.Context, a *API, in *struct {
	OfOrganization
	From time.Time `query:"from" doc:"Seven days before to, when left out."`
	To   time.Time `query:"to" doc:"Now, when left out."`
	By   string    `query:"by"`
},
) (*One[contract.CostReport], error) {
	to := in.To
	if to.IsZero() {
		to = a.Clock.Now()
	}
	from, to, err := parsePeriod(in.From, to, to.Add(-reportPeriod), to)
	if err != nil {
		return nil, err
	}
	var got ledger.Costs
	whole := false
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err == nil {
			whole = s.All
			got, err = r.Costs(s, from, to)
		}
		return err
	})
	got.Lines = mergeCostLines(got.Lines, in.By)
	return &One[contract.CostReport]{Body: encodeCosts(got, whole)}, err
}

// mergeCostLines adds up the lines that differ only in what is not asked for. A machine
// is of one pool and one provisioner, so machines add up too.
func mergeCostLines(lines []ledger.CostLine, by string) []ledger.CostLine {
	var out []ledger.CostLine
	at := map[ledger.CostLine]int{}
	for _, l := range lines {
		if by != "pool" {
			l.PoolID = ""
		}
		if by != "provisioner" {
			l.Provisioner = ""
		}
		key := ledger.CostLine{PoolID: l.PoolID, Provisioner: l.Provisioner, Charge: cost.Charge{
			Payer: l.Payer, OrganizationID: l.OrganizationID, Cause: l.Cause,
		}}
		i, known := at[key]
		if !known {
			at[key] = len(out)
			out = append(out, l)
			continue
		}
		out[i].Machines += l.Machines
		out[i].Charge = out[i].Charge.Add(l.Charge)
	}
	return out
}

func encodeCosts(c ledger.Costs, whole bool) contract.CostReport {
	sums := map[cost.Payer]money.MicroUSD{}
	out := contract.CostReport{From: c.From.UTC(), To: c.To.UTC(), Total: formatMoney(c.Total()),
		Items: []contract.CostLine{}}
	for _, l := range c.Lines {
		sums[l.Payer] += l.Amount
		line := contract.CostLine{
			PoolID: l.PoolID, Provisioner: l.Provisioner, Payer: string(l.Payer), OrganizationID: l.OrganizationID,
			Cause: string(l.Cause), Machines: l.Machines, GPUHours: l.GPUTime.Hours(), Amount: formatMoney(l.Amount),
		}
		if l.Payer == cost.Tenant {
			did := encodeActivity(l.Used(), l.Idle, l.Unobserved)
			line.Activity = &did
		}
		out.Items = append(out.Items, line)
	}
	out.Tenants = formatMoney(sums[cost.Tenant])
	if whole {
		pool, orphans := formatMoney(sums[cost.WarmPool]), formatMoney(sums[cost.Orphan])
		out.WarmPool, out.Orphans = &pool, &orphans
	}
	return out
}

// reportPeriod is what a report covers unless asked otherwise.
const reportPeriod = 7 * 24 * time.Hour

func reportSummary(ctx context.Context, a *API, in *struct {
	OfOrganization
	From time.Time `query:"from" doc:"Seven days before to, when left out."`
	To   time.Time `query:"to" doc:"Now, when left out."`
},
) (*One[contract.Report], error) {
	to := in.To
	if to.IsZero() {
		to = a.Clock.Now()
	}
	from, to, err := parsePeriod(in.From, to, to.Add(-reportPeriod), to)
	if err != nil {
		return nil, err
	}
	var out contract.Report
	err = a.readSnapshot(ctx, func(r ledger.Reader) error {
		s, err := a.requestedScope(ctx, r, in.OfOrganization)
		if err != nil {
			return err
		}
		got, err := r.Report(s, from, to)
		out = encodeReport(got, s.All)
		return err
	})
	return &One[contract.Report]{Body: out}, err
}

// encodeReport returns a report as it goes over the wire; whole is one of the whole
// installation.
func encodeReport(r ledger.Report, whole bool) contract.Report {
	out := contract.Report{
		From: r.From.UTC(), To: r.To.UTC(), Starts: r.Starts, ZeroWaitStarts: r.ZeroWaits, P95Wait: r.WaitP95.Seconds(),
		BusyCost: formatMoney(r.BusyCost), BusyGPUHours: r.BusyHours, Waits: encodeWaits(r.Waits),
		Activity: encodeActivity(r.HeldUsed, r.HeldIdle, r.HeldUnobserved),
	}
	if whole {
		addWaste(&out, r)
	}
	if r.Starts > 0 {
		rate := float64(r.ZeroWaits) / float64(r.Starts)
		out.ZeroWaitRate, out.MeanWait = &rate, (r.WaitTotal / time.Duration(r.Starts)).Seconds()
	}
	return out
}

func encodeActivity(used, idle, unobserved cost.Part) contract.Activity {
	part := func(p cost.Part) contract.ActivityPart {
		return contract.ActivityPart{GPUHours: p.GPUTime.Hours(), Cost: formatMoney(p.Amount)}
	}
	return contract.Activity{Used: part(used), Idle: part(idle), Unobserved: part(unobserved)}
}

func encodeWaits(waits []ledger.WorkWaits) []contract.Waits {
	var out []contract.Waits
	for _, w := range waits {
		x := contract.Waits{Reason: w.Reason, Starts: w.Starts, Waiting: w.Waiting}
		if w.Starts > 0 {
			x.MeanSeconds = (w.Total / time.Duration(w.Starts)).Seconds()
		}
		out = append(out, x)
	}
	return out
}

// addWaste adds what nodes cost that did not compute.
func addWaste(out *contract.Report, r ledger.Report) {
	spent, waste, idle := formatMoney(r.Spent()), formatMoney(r.IdleWaste()), formatMoney(r.IdleCost)
	boot, minimum, orphans := formatMoney(r.BootCost), formatMoney(r.MinBillingCost), formatMoney(r.OrphanCost)
	out.TotalCost, out.IdleWaste, out.IdleCost, out.BootCost = &spent, &waste, &idle, &boot
	out.MinBillingCost, out.OrphanCost = &minimum, &orphans
	out.IdleGPUHours, out.BootGPUHours = &r.IdleHours, &r.BootHours
	if all := r.Spent(); all > 0 {
		share := float64(r.IdleWaste()) / float64(all)
		out.IdleWasteShare = &share
	}
}
