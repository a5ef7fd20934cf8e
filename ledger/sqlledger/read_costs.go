package sqlledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/cost"
	"github.com/forewarm/forewarm/ledger"
)

// billedInPeriod holds for what was billed at some time in a period. Its parameters
// are the period's start, its end, and its start twice more. What it says first is for the index.
const billedInPeriod = "(billed_until = 0 OR billed_until >= ?) AND billed_from > 0 AND billed_from < ? " +
	"AND (billed_until = 0 OR billed_until > ? OR billed_from >= ?)"

// costReader divides what was billed among those who pay for it, and adds up a
// period.
type costReader struct{ *connection }

// Costs divides what was billed in a period. It reads the whole life of an instance
// of which only a part lies in the period: why nobody held a GPU can show later.
func (r costReader) Costs(s ledger.Scope, from, to time.Time) (ledger.Costs, error) {
	costs := ledger.Costs{From: from, To: to}
	if now := r.Now(); now.Before(to) {
		to = now
	}
	if !from.Before(to) {
		return costs, nil
	}
	period := calendar.Interval{Start: from, End: to}
	machines, err := r.billedInstances(period)
	if err != nil {
		return costs, wrapError("reading what was billed", err)
	}
	sums := map[lineKey]*ledger.CostLine{}
	for _, m := range machines {
		for _, c := range cost.Divide(m.Instance, period) {
			addCharge(sums, m, c)
		}
	}
	for _, line := range sums {
		if s.All || (s.OrganizationID != "" && line.OrganizationID == s.OrganizationID) {
			costs.Lines = append(costs.Lines, *line)
		}
	}
	slices.SortFunc(costs.Lines, func(a, b ledger.CostLine) int {
		return cmp.Or(cmp.Compare(a.PoolID, b.PoolID), cmp.Compare(a.Provisioner, b.Provisioner),
			cmp.Compare(a.Payer, b.Payer),
			cmp.Compare(a.OrganizationID, b.OrganizationID), cmp.Compare(a.Cause, b.Cause))
	})
	return costs, nil
}

// billedInstance is an instance, and the pool that it belonged to.
type billedInstance struct {
	pool string
	cost.Instance
}

type lineKey struct {
	pool, provisioner, organization string
	payer                           cost.Payer
	cause                           cost.Cause
}

func addCharge(sums map[lineKey]*ledger.CostLine, m billedInstance, c cost.Charge) {
	key := lineKey{m.pool, m.Price.Provisioner, c.OrganizationID, c.Payer, c.Cause}
	line := sums[key]
	if line == nil {
		line = &ledger.CostLine{PoolID: m.pool, Provisioner: m.Price.Provisioner, Charge: cost.Charge{
			Payer: c.Payer, OrganizationID: c.OrganizationID, Cause: c.Cause,
		}}
		sums[key] = line
	}
	line.Machines++
	line.GPUTime += c.GPUTime
	line.Amount += c.Amount
}

func (r costReader) billedInstances(period calendar.Interval) ([]billedInstance, error) {
	end, start := toMicros(period.End), toMicros(period.Start)
	var rows []nodeRow
	if err := r.newQuery().Where(billedInPeriod, start, end, start, start).Order("id").Find(&rows).Error; err != nil {
		return nil, err
	}
	pools, err := r.gpusPerNode()
	if err != nil {
		return nil, err
	}
	holds, err := r.holdsOf(period)
	if err != nil {
		return nil, err
	}
	missed, err := r.missedByPlace(period)
	if err != nil {
		return nil, err
	}
	machines := make([]billedInstance, 0, len(rows))
	for _, row := range rows {
		n, err := row.toValue()
		if err != nil {
			return nil, err
		}
		machines = append(machines, billedInstance{n.PoolID, cost.Instance{
			Price: n.Offering, GPUs: pools[n.PoolID], Ready: n.ReadyAt, Retired: n.RetiredAt,
			Billed: r.billedOver(n.BilledFrom, n.BilledUntil), Holds: holds[n.ID],
			Missed:      missed[poolSlot{n.PoolID, n.Slot}],
			Quarantined: n.Quarantine.Spans, Booting: n.Coming(),
		}})
	}
	return r.withOrphans(machines, period)
}

func (r costReader) billedOver(from, until time.Time) calendar.Interval {
	if until.IsZero() {
		until = r.Now()
	}
	return calendar.Interval{Start: from, End: until}
}

func (r costReader) withOrphans(machines []billedInstance, period calendar.Interval) ([]billedInstance, error) {
	end, start := toMicros(period.End), toMicros(period.Start)
	db := r.newQuery().Where(billedInPeriod, start, end, start, start).Order("provisioner, machine")
	orphans, err := listRows[orphanRow](db, "reading orphans")
	for _, o := range orphans {
		machines = append(machines, billedInstance{"", cost.Instance{
			Price: o.Source, GPUs: max(o.GPUs, 1), Billed: r.billedOver(o.BilledFrom, o.BilledUntil), Orphan: true,
		}})
	}
	return machines, err
}

func (r costReader) gpusPerNode() (map[string]int, error) {
	var rows []struct {
		ID      string `gorm:"column:id"`
		PerNode int    `gorm:"column:per_node"`
	}
	err := r.newQuery().Table("pools").Select("id, per_node").Scan(&rows).Error
	pools := make(map[string]int, len(rows))
	for _, row := range rows {
		pools[row.ID] = row.PerNode
	}
	return pools, err
}

// holdsOf reads, by node, who held which GPUs of the instances billed in the
// period.
func (r costReader) holdsOf(period calendar.Interval) (map[string][]cost.Hold, error) {
	var rows []struct {
		NodeID         string `gorm:"column:node_id"`
		UUID           string `gorm:"column:gpu_uuid"`
		OrganizationID string `gorm:"column:organization_id"`
		Since          int64  `gorm:"column:since"`
		Until          *int64 `gorm:"column:until"`
	}
	end, start := toMicros(period.End), toMicros(period.Start)
	err := r.newQuery().Table("allocation_gpus").
		Select("allocation_gpus.node_id, gpu_uuid, organization_id, since, until").
		Joins("JOIN allocations ON allocations.id = allocation_gpus.allocation_id").
		Where("allocation_gpus.node_id IN (SELECT id FROM nodes WHERE "+billedInPeriod+")", start, end, start, start).
		Scan(&rows).Error
	holds := map[string][]cost.Hold{}
	for _, row := range rows {
		held := calendar.Interval{Start: toTime(row.Since), End: r.Now()}
		if row.Until != nil {
			held.End = toTime(*row.Until)
		}
		holds[row.NodeID] = append(holds[row.NodeID],
			cost.Hold{GPU: row.UUID, OrganizationID: row.OrganizationID, Held: held})
	}
	return holds, err
}

// poolSlot names a slot of a pool.
type poolSlot struct {
	pool string
	slot int
}

// missedByPlace reads when slots stood ready for reservations that nobody claimed.
func (r costReader) missedByPlace(period calendar.Interval) (map[poolSlot][]calendar.Interval, error) {
	db := r.newQuery().Where("state = 'expired' AND ready_at > 0 AND ready_at < ? AND ended_at > ?",
		toMicros(period.End), toMicros(period.Start))
	reservations, err := listRows[reservationRow](db, "reading who never came")
	missed := map[poolSlot][]calendar.Interval{}
	for _, res := range reservations {
		for _, slot := range res.Slots {
			at := poolSlot{res.PoolID, slot}
			missed[at] = append(missed[at], calendar.Interval{Start: res.ReadyAt, End: res.EndedAt})
		}
	}
	return missed, err
}

// Report adds up a period. A tenant's report has only its own starts and use: nodes
// are shared, so what idling and booting cost is the installation's.
func (r costReader) Report(s ledger.Scope, from, to time.Time) (ledger.Report, error) {
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

// addWaits adds the waits of the allocations that became active in the period.
func (r costReader) addWaits(report *ledger.Report, s ledger.Scope) error {
	var rows []struct {
		Requested int64 `gorm:"column:requested_at"`
		Active    int64 `gorm:"column:active_at"`
	}
	err := r.ownRows(s).Table("allocations").Select("requested_at, active_at").
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

// percentile95 returns the nearest-rank 95th percentile: the value at rank
// ⌈0.95·n⌉.
func percentile95(waits []time.Duration) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[(len(waits)*95+99)/100-1]
}
