package sqlledger

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/ledger"
)

// Report adds up a period. What idling and booting cost is the installation's
// alone: nodes are shared, so a tenant's report has its own starts and use only.
func (r *reader) Report(s ledger.Scope, from, to time.Time) (ledger.Report, error) {
	report := ledger.Report{From: from, To: to}
	period := calendar.Interval{Start: from, End: to}
	if now := r.Now(); now.Before(to) {
		period.End = now
	}
	if err := r.addWaits(&report, s); err != nil {
		return report, wrap("adding up waits", err)
	}
	busy, err := r.addBusy(&report, s, period)
	if err != nil {
		return report, wrap("adding up use", err)
	}
	if !s.All {
		return report, nil
	}
	return report, wrap("adding up node time", r.addUnused(&report, busy, period))
}

// addWaits looks at the allocations that became active in the period.
func (r *reader) addWaits(report *ledger.Report, s ledger.Scope) error {
	var rows []struct {
		Requested int64 `gorm:"column:requested_at"`
		Active    int64 `gorm:"column:active_at"`
	}
	err := scoped(r.query(), s, tenant).Table("allocations").Select("requested_at, active_at").
		Where("active_at >= ? AND active_at < ? AND active_at > 0", micros(report.From), micros(report.To)).
		Scan(&rows).Error
	waits := make([]time.Duration, len(rows))
	for i, row := range rows {
		waits[i] = span(row.Active - row.Requested)
		report.WaitTotal += waits[i]
		if waits[i] <= allocation.ZeroWait {
			report.ZeroWaits++
		}
	}
	report.Starts = len(waits)
	report.WaitP95 = p95(waits)
	return err
}

// p95 is the nearest-rank 95th percentile: the value at rank ⌈0.95·n⌉.
func p95(waits []time.Duration) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[(len(waits)*95+99)/100-1]
}

// addBusy adds up the time that GPUs were held, and returns it by node.
func (r *reader) addBusy(report *ledger.Report, s ledger.Scope, period calendar.Interval) (map[string]time.Duration, error) {
	var rows []struct {
		NodeID  string `gorm:"column:node_id"`
		Since   int64  `gorm:"column:since"`
		Until   *int64 `gorm:"column:until"`
		Price   int64  `gorm:"column:price"`
		PerNode int    `gorm:"column:per_node"`
	}
	err := scoped(r.query(), s, "allocations.organization_id").Table("allocation_gpus").
		Select("allocation_gpus.node_id, since, until, nodes.price, pools.per_node").
		Joins("JOIN allocations ON allocations.id = allocation_gpus.allocation_id").
		Joins("JOIN pools ON pools.id = allocations.pool_id").
		Joins("JOIN nodes ON nodes.id = allocation_gpus.node_id").
		Where("since < ? AND (until IS NULL OR until > ?)", micros(period.End), micros(period.Start)).
		Scan(&rows).Error
	busy := map[string]time.Duration{}
	for _, row := range rows {
		held := calendar.Interval{Start: moment(row.Since), End: period.End}
		if row.Until != nil {
			held.End = moment(*row.Until)
		}
		d := within(period, held)
		busy[row.NodeID] += d
		report.BusyHours += d.Hours()
		report.BusyCost += share(gpu.MicroUSD(row.Price).For(d), row.PerNode)
	}
	return busy, err
}

// share is one part in n of an amount, rounded to the nearest micro-dollar.
func share(m gpu.MicroUSD, n int) gpu.MicroUSD { return (m + gpu.MicroUSD(n)/2) / gpu.MicroUSD(n) }

// within returns how long iv lasts inside period.
func within(period, iv calendar.Interval) time.Duration {
	if iv.End.After(period.End) {
		iv.End = period.End
	}
	return max(0, iv.From(period.Start).Length())
}

// lifeRow is as much of a node as is billed.
type lifeRow struct {
	ID         string `gorm:"column:id"`
	ProviderID string `gorm:"column:provider_id"`
	Requested  int64  `gorm:"column:requested_at"`
	Booting    int64  `gorm:"column:booting_at"`
	Ready      int64  `gorm:"column:ready_at"`
	Retired    int64  `gorm:"column:retired_at"`
	Absent     int64  `gorm:"column:absent_at"`
	Gone       int64  `gorm:"column:gone_at"`
	Price      int64  `gorm:"column:price"`
	PerNode    int    `gorm:"column:per_node"`
}

// addUnused adds up the time of machines that were paid for and not held.
func (r *reader) addUnused(report *ledger.Report, busy map[string]time.Duration, period calendar.Interval) error {
	var rows []lifeRow
	err := r.query().Raw(`
		SELECT nodes.id, provider_id, requested_at, booting_at, ready_at, retired_at, absent_at, gone_at, nodes.price, per_node
		FROM nodes JOIN pools ON pools.id = nodes.pool_id
		WHERE requested_at < ? AND (gone_at = 0 OR gone_at > ?)`,
		micros(period.End), micros(period.Start)).Scan(&rows).Error
	for _, row := range rows {
		life, usable := row.spans(period.End)
		ready := within(period, usable)
		boot := within(period, life) - ready
		idle := max(0, ready*time.Duration(row.PerNode)-busy[row.ID])
		price := gpu.MicroUSD(row.Price)
		report.BootCost += price.For(boot)
		report.BootHours += boot.Hours() * float64(row.PerNode)
		report.IdleCost += share(price.For(idle), row.PerNode)
		report.IdleHours += idle.Hours()
	}
	return err
}

// spans returns when the machine existed, and when in that it could be used.
// Both are empty where the provider never made one.
func (l lifeRow) spans(now time.Time) (life, usable calendar.Interval) {
	start := l.Booting
	if start == 0 && l.ProviderID != "" {
		start = l.Requested
	}
	if start == 0 {
		return life, usable
	}
	life = calendar.Interval{Start: moment(start), End: first(now, l.Absent, l.Gone)}
	if l.Ready != 0 {
		usable = calendar.Interval{Start: moment(l.Ready), End: first(now, l.Retired, l.Absent, l.Gone)}
	}
	return life, usable
}

// first returns the earliest of the times that are set, or the one that always is.
func first(always time.Time, times ...int64) time.Time {
	earliest := micros(always)
	for _, us := range times {
		if us != 0 {
			earliest = min(earliest, us)
		}
	}
	return moment(earliest)
}
