package sqlledger

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
)

// Report adds up a period. What idling and booting cost is the installation's
// alone: nodes are shared, so a tenant's report has its own starts and use only.
func (r *reader) Report(s ledger.Scope, from, to time.Time) (ledger.Report, error) {
	report := ledger.Report{From: from, To: to}
	if err := r.addWaits(&report, s); err != nil {
		return report, wrapError("adding up waits", err)
	}
	costs, err := r.Costs(s, from, to)
	if err != nil {
		return report, wrapError("adding up node time", err)
	}
	report.AddCosts(costs)
	return report, nil
}

// addWaits looks at the allocations that became active in the period.
func (r *reader) addWaits(report *ledger.Report, s ledger.Scope) error {
	var rows []struct {
		Requested int64 `gorm:"column:requested_at"`
		Active    int64 `gorm:"column:active_at"`
	}
	err := inScope(r.newQuery(), s, tenantColumn).Table("allocations").Select("requested_at, active_at").
		Where("active_at >= ? AND active_at < ? AND active_at > 0", toMicros(report.From), toMicros(report.To)).
		Scan(&rows).Error
	waits := make([]time.Duration, len(rows))
	for i, row := range rows {
		waits[i] = toDuration(row.Active - row.Requested)
		report.WaitTotal += waits[i]
		if waits[i] <= allocation.ZeroWait {
			report.ZeroWaits++
		}
	}
	report.Starts = len(waits)
	report.WaitP95 = percentile95(waits)
	return err
}

// percentile95 is the nearest-rank 95th percentile: the value at rank ⌈0.95·n⌉.
func percentile95(waits []time.Duration) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[(len(waits)*95+99)/100-1]
}
