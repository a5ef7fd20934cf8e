package sqlledger

import (
	"time"

	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// spentRow is a sum over rows that are over.
type spentRow struct {
	OrganizationID string `gorm:"column:organization_id"`
	MadeBy         string `gorm:"column:made_by"`
	Class          string `gorm:"column:class"`
	Day            int64  `gorm:"column:day"`
	Cost           int64  `gorm:"column:cost"`
	GPUSeconds     int64  `gorm:"column:gpu_seconds"`
}

// A reservation holds GPUs while they are kept warm for it, an allocation while
// somebody has them. Rows that cost and held nothing are left out.
const (
	spentOnReservations = `
		SELECT organization_id, made_by, class, window_start / ? AS day, CAST(SUM(cost) AS BIGINT) AS cost,
			CAST(SUM(CASE WHEN warmed_at = 0 OR ended_at < warmed_at THEN 0
				ELSE nodes * per_node * ((ended_at - warmed_at) / 1000000) END) AS BIGINT) AS gpu_seconds
		FROM reservations
		WHERE pool_id = ? AND window_start >= ? AND (cost > 0 OR warmed_at > 0) AND `
	spentOnAllocations = `
		SELECT organization_id, held_by AS made_by, '' AS class, window_start / ? AS day, CAST(0 AS BIGINT) AS cost,
			CAST(SUM(CASE WHEN ended_at < active_at THEN 0
				ELSE nodes * per_node * ((ended_at - active_at) / 1000000) END) AS BIGINT) AS gpu_seconds
		FROM allocations
		WHERE pool_id = ? AND window_start >= ? AND active_at > 0 AND `
	spentOrder = " GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
)

// spent adds up what is over in a pool, from the first day of this UTC month on.
func (r *reader) spent(pool ledger.Pool) ([]ledger.Spend, error) {
	now := r.Now()
	month := micros(time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC))
	var rows []spentRow
	for _, statement := range []string{
		spentOnReservations + overReservation + spentOrder, spentOnAllocations + overAllocation + spentOrder,
	} {
		var some []spentRow
		if err := r.query().Raw(statement, dayMicros, pool.ID, month).Scan(&some).Error; err != nil {
			return nil, wrap("adding up what was spent", err)
		}
		rows = append(rows, some...)
	}
	var spent []ledger.Spend
	for _, row := range rows {
		spent = append(spent, row.value(pool))
	}
	return spent, nil
}

func (r spentRow) value(pool ledger.Pool) ledger.Spend {
	s := ledger.Spend{
		OrganizationID: r.OrganizationID, MadeBy: r.MadeBy, Class: reservation.Class(r.Class),
		Day: moment(r.Day * dayMicros), Cost: gpu.MicroUSD(r.Cost), GPUSeconds: r.GPUSeconds,
	}
	if s.Class == "" { // an allocation's row holds no cost
		s.Cost = priceOf(pool, r.GPUSeconds)
	}
	return s
}

// priceOf is the price of GPU-seconds: the part of the nodes' price that the GPUs
// are, as admission.Cost has it. Whole hours apart, so that a month of a large
// pool fits.
func priceOf(pool ledger.Pool, gpuSeconds int64) gpu.MicroUSD {
	const hour = int64(time.Hour / time.Second)
	perGPU := pool.Price / gpu.MicroUSD(max(pool.PerNode, 1))
	rest := time.Duration(gpuSeconds%hour) * time.Second
	return perGPU*gpu.MicroUSD(gpuSeconds/hour) + perGPU.For(rest)
}
