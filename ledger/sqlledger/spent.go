package sqlledger

import (
	"time"

	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// spentRow is a sum over bookings that are over.
type spentRow struct {
	OrganizationID string `gorm:"column:organization_id"`
	MadeBy         string `gorm:"column:made_by"`
	UserID         string `gorm:"column:user_id"`
	PoolID         string `gorm:"column:pool_id"`
	Class          string `gorm:"column:class"`
	Day            int64  `gorm:"column:day"`
	Cost           int64  `gorm:"column:cost"`
	GPUSeconds     int64  `gorm:"column:gpu_seconds"`
	GPUMicros      int64  `gorm:"column:gpu_micros"`
}

// The sums. A reservation holds GPUs while they are kept warm for it, an allocation
// while somebody has them. Rows that cost and held nothing are left out. Parameters
// are a pool or an organization, and twice the first instant of this month.
var (
	spentOnReservations = spentFrom(reservationsSpent, ofPool)
	spentOnAllocations  = spentFrom(allocationsSpent, ofPool)
	reservedOfTenant    = spentFrom(reservationsSpent, ofTenant)
	heldOfTenant        = spentFrom(allocationsSpent, ofTenant)
)

// The sums of a pool from a time on, which is the second parameter: knowing it, the
// database reads no older rows.
var (
	reservedInPool = spentSince(reservationsSpent, ofPool, "?")
	heldInPool     = spentSince(allocationsSpent, ofPool, "?")
)

var (
	reservationsSpent = `
		SELECT organization_id, made_by, user_id, pool_id, class, window_start, cost,
			CASE WHEN warmed_at = 0 OR ended_at < warmed_at THEN 0 ELSE` +
		` (nodes * per_node - short) * ((ended_at - warmed_at) / 1000000) END AS gpu_seconds,
			CAST(0 AS BIGINT) AS gpu_micros
		FROM reservations WHERE (cost > 0 OR warmed_at > 0) AND ` + overReservation
	allocationsSpent = `
		SELECT organization_id, held_by AS made_by, user_id, pool_id, '' AS class, window_start,` +
		` CAST(0 AS BIGINT) AS cost,
			CASE WHEN ended_at < active_at THEN 0 ELSE` +
		` (nodes * per_node - short) * ((ended_at - active_at) / 1000000) END AS gpu_seconds,
			CASE WHEN ended_at < active_at THEN 0 ELSE` +
		` (nodes * per_node - short) * (ended_at - active_at) END AS gpu_micros
		FROM allocations WHERE active_at > 0 AND work = '' AND ` + overAllocation
)

// Whose rows are added up. The rows of an organization are not found by an index of
// its own, which would hold all that it ever had.
const (
	ofPool   = "pool_id = ?"
	ofTenant = "organization_id || '' = ? AND " + inAnyPool
)

// countedFrom is the time from which bookings count: the beginning of this month,
// or of an earlier one in which something began that is still live. It can be
// prolonged, and then counts where it began. 31 days cover the rest of any month. It is
// the beginning of a day, as sums of days are remembered.
var countedFrom = `(
	SELECT CASE WHEN MIN(began) < ? THEN MIN(began) / 86400000000 * 86400000000 - 2678400000000 ELSE ? END FROM (
		SELECT MIN(window_start) AS began FROM allocations WHERE work = '' AND ` + inAnyPool + ` AND ` +
	liveAllocation + `
		UNION ALL SELECT MIN(window_start) FROM reservations WHERE ` + inAnyPool +
	` AND ` + liveReservation + `) AS living)`

// spentFrom adds up rows by organization, key, person, pool, class and day.
func spentFrom(rows, whose string) string { return spentSince(rows, whose, countedFrom) }

func spentSince(rows, whose, from string) string {
	return `FROM (
		SELECT organization_id, made_by, user_id, pool_id, class, window_start / 86400000000 AS day,
			CAST(SUM(cost) AS BIGINT) AS cost, CAST(SUM(gpu_seconds) AS BIGINT) AS gpu_seconds,` +
		` CAST(SUM(gpu_micros) AS BIGINT) AS gpu_micros
		FROM (` + rows + ` AND ` + whose + ` AND window_start >= ` + from +
		`) AS ended GROUP BY 1, 2, 3, 4, 5, 6) AS spent
		ORDER BY organization_id, made_by, class, day, user_id, pool_id`
}

func (r spentRow) toSpend(pool ledger.Pool) ledger.Spend {
	s := ledger.Spend{
		OrganizationID: r.OrganizationID, MadeBy: r.MadeBy, UserID: r.UserID, Class: reservation.Class(r.Class),
		Day: toTime(r.Day * dayMicros), Cost: money.MicroUSD(r.Cost), GPUSeconds: r.GPUSeconds,
	}
	if s.Class == "" { // the sums of allocations hold no cost
		s.Cost = priceOf(pool, r.GPUMicros)
	}
	return s
}

// priceOf is the price of GPU-microseconds: their share of the price of the nodes,
// as in admission.Cost. Whole hours are multiplied apart from the rest, so that a
// month of a large pool does not overflow.
func priceOf(pool ledger.Pool, gpuMicros int64) money.MicroUSD {
	const hour = int64(time.Hour / time.Microsecond)
	perGPU := pool.Price / money.MicroUSD(max(pool.PerNode, 1))
	rest := time.Duration(gpuMicros%hour) * time.Microsecond
	return perGPU*money.MicroUSD(gpuMicros/hour) + perGPU.For(rest)
}
