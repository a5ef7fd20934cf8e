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
	charged, err := r.chargesIn(period)
	if err != nil {
		return costs, wrapError("reading what was billed", err)
	}
	sums := map[lineKey]*ledger.CostLine{}
	for _, m := range charged {
		for _, c := range m.charges {
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

// chargedInstance is what an instance cost, and the pool that it belonged to.
type chargedInstance struct {
	pool, provisioner string
	charges           []cost.Charge
}

type lineKey struct {
	pool, provisioner, organization string
	payer                           cost.Payer
	cause                           cost.Cause
}

func addCharge(sums map[lineKey]*ledger.CostLine, m chargedInstance, c cost.Charge) {
	key := lineKey{m.pool, m.provisioner, c.OrganizationID, c.Payer, c.Cause}
	line := sums[key]
	if line == nil {
		line = &ledger.CostLine{PoolID: m.pool, Provisioner: m.provisioner, Charge: cost.Charge{
			Payer: c.Payer, OrganizationID: c.OrganizationID, Cause: c.Cause,
		}}
		sums[key] = line
	}
	line.Machines++
	line.Charge = line.Charge.Add(c)
}

// chargesIn divides what each instance cost in a period. Those whose whole life is over
// and inside the period were divided before, most of them.
func (r costReader) chargesIn(period calendar.Interval) ([]chargedInstance, error) {
	end, start := toMicros(period.End), toMicros(period.Start)
	var found []billedNode
	if err := r.readTogether(queryRows("reading what was billed", &found, "FROM nodes WHERE "+billedInPeriod,
		start, end, start, start)); err != nil {
		return nil, err
	}
	pools, err := r.gpusPerNode()
	if err != nil {
		return nil, err
	}
	var all []chargedInstance
	var others []billedNode
	for _, n := range found {
		if known, ok := r.store.charged.find(n, pools[n.PoolID]); ok && n.isInside(period) {
			all = append(all, known)
		} else {
			others = append(others, n)
		}
	}
	// Those that were over early are divided apart, so that nobody reads all between.
	early, late := splitNodes(others, period)
	for _, some := range [][]billedNode{early, late} {
		divided, err := r.divideNodes(some, period, pools)
		if err != nil {
			return nil, err
		}
		all = append(all, divided...)
	}
	orphans, err := r.divideOrphans(period)
	return append(all, orphans...), err
}

// splitNodes parts the nodes that were there before the period began, and were over
// before its end, from the others.
func splitNodes(nodes []billedNode, period calendar.Interval) (early, late []billedNode) {
	for _, n := range nodes {
		if n.From < toMicros(period.Start) && n.Until > 0 && n.Until < toMicros(period.End) {
			early = append(early, n)
		} else {
			late = append(late, n)
		}
	}
	return early, late
}

// atOnce bounds the parameters of one question.
const atOnce = 1000

// divideNodes divides what nodes cost in a period. Those that are over, inside it, are
// remembered.
func (r costReader) divideNodes(nodes []billedNode, period calendar.Interval, pools map[string]int) (
	[]chargedInstance, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	missed, err := r.missedByPlace(lifeOf(nodes, period))
	if err != nil {
		return nil, err
	}
	var settled int64 // read when it is needed
	var all []chargedInstance
	for part := range slices.Chunk(nodes, atOnce) {
		instances, err := r.readInstances(part, pools, period, missed)
		if err != nil {
			return nil, err
		}
		for _, n := range part {
			m, ok := instances[n.ID]
			if !ok {
				continue
			}
			c := chargedInstance{pool: n.PoolID, provisioner: m.Price.Provisioner, charges: cost.Divide(m, period)}
			all = append(all, c)
			if !n.isInside(period) || !allEnded(m.Holds, m.Billed.End) {
				continue
			}
			if settled == 0 {
				if settled, err = r.settledBefore(); err != nil {
					return nil, err
				}
			}
			if n.Until < settled {
				r.store.charged.keep(n, pools[n.PoolID], c)
			}
		}
	}
	return all, nil
}

// lifeOf is the part of a period in which any of the nodes was there.
func lifeOf(nodes []billedNode, period calendar.Interval) calendar.Interval {
	first, last := nodes[0].From, nodes[0].Until
	for _, n := range nodes {
		first = min(first, n.From)
		if last = max(last, n.Until); n.Until == 0 {
			last = toMicros(period.End)
		}
	}
	life := period.From(toTime(first))
	if end := toTime(last); end.Before(life.End) {
		life.End = end
	}
	return life
}

// readInstances reads nodes, and who held their GPUs, as they are charged.
func (r costReader) readInstances(nodes []billedNode, pools map[string]int, period calendar.Interval,
	missed map[poolSlot][]calendar.Interval) (map[string]cost.Instance, error) {
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = n.ID
	}
	rows, err := listRows[nodeRow](r.newQuery().Where("id IN ?", ids), "reading what was billed")
	if err != nil {
		return nil, err
	}
	holds, err := r.holdsOf(ids)
	if err != nil {
		return nil, err
	}
	did, err := r.activityOf(ids, period)
	if err != nil {
		return nil, err
	}
	out := make(map[string]cost.Instance, len(rows))
	for _, n := range rows {
		out[n.ID] = cost.Instance{
			Price: n.Offering, GPUs: pools[n.PoolID], Ready: n.ReadyAt, Retired: n.RetiredAt,
			Billed: r.billedOver(n.BilledFrom, n.BilledUntil), Holds: holds[n.ID],
			Missed:      missed[poolSlot{n.PoolID, n.Slot}],
			Quarantined: n.Quarantine.Spans, Booting: n.Coming(), Activity: did[n.ID],
		}
	}
	return out, nil
}

func (r costReader) billedOver(from, until time.Time) calendar.Interval {
	if until.IsZero() {
		until = r.Now()
	}
	return calendar.Interval{Start: from, End: until}
}

func (r costReader) divideOrphans(period calendar.Interval) (machines []chargedInstance, err error) {
	end, start := toMicros(period.End), toMicros(period.Start)
	db := r.newQuery().Where(billedInPeriod, start, end, start, start).Order("provisioner, machine")
	orphans, err := listRows[orphanRow](db, "reading orphans")
	for _, o := range orphans {
		machines = append(machines, chargedInstance{provisioner: o.Source.Provisioner, charges: cost.Divide(cost.Instance{
			Price: o.Source, GPUs: max(o.GPUs, 1), Billed: r.billedOver(o.BilledFrom, o.BilledUntil), Orphan: true,
		}, period)})
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

// holdsOf reads, by node, who held which of their GPUs.
func (r costReader) holdsOf(nodes []string) (map[string][]cost.Hold, error) {
	var rows []struct {
		NodeID         string `gorm:"column:node_id"`
		UUID           string `gorm:"column:gpu_uuid"`
		OrganizationID string `gorm:"column:organization_id"`
		Since          int64  `gorm:"column:since"`
		Until          *int64 `gorm:"column:until"`
	}
	err := r.newQuery().Table("allocation_gpus").
		Select("allocation_gpus.node_id, gpu_uuid, organization_id, since, until").
		Joins("JOIN allocations ON allocations.id = allocation_gpus.allocation_id").
		Where("allocation_gpus.node_id IN ?", nodes).
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

// missedRow is a reservation that nobody came for.
type missedRow struct {
	PoolID string `gorm:"column:pool_id"`
	Slots  string `gorm:"column:slots"`
	Ready  int64  `gorm:"column:ready_at"`
	Ended  int64  `gorm:"column:ended_at"`
}

func (missedRow) TableName() string { return "reservations" }

// missedByPlace reads when slots stood ready for reservations that nobody claimed.
func (r costReader) missedByPlace(period calendar.Interval) (map[poolSlot][]calendar.Interval, error) {
	var rows []missedRow
	if err := r.readTogether(queryRows("reading who did not come", &rows,
		"FROM reservations WHERE state = 'expired' AND part_of = '' AND ready_at > 0 AND ready_at < ? AND ended_at > ?",
		toMicros(period.End), toMicros(period.Start))); err != nil {
		return nil, err
	}
	missed := map[poolSlot][]calendar.Interval{}
	for _, row := range rows {
		slots, err := unpackList[int]("slots", row.Slots)
		if err != nil {
			return nil, err
		}
		for _, slot := range slots {
			at := poolSlot{row.PoolID, slot}
			missed[at] = append(missed[at], calendar.Interval{Start: toTime(row.Ready), End: toTime(row.Ended)})
		}
	}
	return missed, nil
}

// Report adds up a period. A tenant's report has only its own starts and use: nodes
// are shared, so what idling and booting cost is the installation's.
func (r costReader) Report(s ledger.Scope, from, to time.Time) (ledger.Report, error) {
	report := ledger.Report{From: from, To: to}
	if err := r.addWaits(&report, s); err != nil {
		return report, wrapError("adding up waits", err)
	}
	work, err := r.WorkStarts(s, "", from, to)
	if err != nil {
		return report, err
	}
	report.Waits = work.Waits
	costs, err := r.Costs(s, from, to)
	if err != nil {
		return report, wrapError("adding up node time", err)
	}
	report.AddCosts(costs)
	return report, nil
}

// addWaits adds the waits of the allocations that became active in the period, as far as
// somebody has watched.
func (r costReader) addWaits(report *ledger.Report, s ledger.Scope) error {
	const wait = "active_at - requested_at"
	const period = "active_at >= ? AND active_at < ? AND active_at > 0 AND waited_for <> '" +
		allocation.WaitedUnwatched + "'"
	from, to := toMicros(report.From), toMicros(report.To)
	var sums struct {
		Starts int   `gorm:"column:starts"`
		Zero   int   `gorm:"column:zero"`
		Total  int64 `gorm:"column:total"`
	}
	err := r.ownRows(s).Table("allocations").Select("COUNT(*) AS starts, "+
		"CAST(COALESCE(SUM("+wait+"), 0) AS BIGINT) AS total, "+
		"COUNT(CASE WHEN "+wait+" <= ? THEN 1 END) AS zero", allocation.ZeroWait.Microseconds()).
		Where(period, from, to).Scan(&sums).Error
	if err != nil || sums.Starts == 0 {
		return err
	}
	// By nearest rank, counted from the longest: the database then sorts the few above it.
	above := sums.Starts - (sums.Starts*95+99)/100
	var p95 int64
	err = r.ownRows(s).Table("allocations").Select(wait+" AS wait").Where(period, from, to).
		Order("wait DESC").Limit(1).Offset(above).Scan(&p95).Error
	report.Starts, report.ZeroWaits, report.WaitTotal = sums.Starts, sums.Zero, toDuration(sums.Total)
	report.WaitP95 = toDuration(p95)
	return err
}
