package sqlledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
)

// workWaitsRow is what the starts come to that waited for one thing before a boot.
type workWaitsRow struct {
	Reason   string `gorm:"column:waited_for"`
	Starts   int    `gorm:"column:starts"`
	Queued   int64  `gorm:"column:queued"` // before they waited for a boot, or for nothing
	Booted   int    `gorm:"column:booted"` // of them, those that waited for a boot
	BootTime int64  `gorm:"column:boot_time"`
}

// WorkStarts reads them from their index.
func (r costReader) WorkStarts(s ledger.Scope, poolID string, from, to time.Time) (ledger.WorkStarts, error) {
	const wait = "active_at - requested_at"
	zero := allocation.ZeroWait.Microseconds()
	db := r.ownRows(s).Table("allocations").Select("waited_for, COUNT(*) AS starts, "+
		"CAST(SUM(CASE WHEN queued_at > 0 THEN requested_at - queued_at ELSE 0 END) AS BIGINT) AS queued, "+
		"COUNT(CASE WHEN "+wait+" > ? THEN 1 END) AS booted, "+
		"CAST(SUM(CASE WHEN "+wait+" > ? THEN "+wait+" ELSE 0 END) AS BIGINT) AS boot_time", zero, zero).
		Where("work <> '' AND active_at > 0 AND active_at >= ? AND active_at < ? AND waited_for <> ?", toMicros(from),
			toMicros(to), allocation.WaitedUnwatched)
	if poolID != "" {
		db = db.Where("pool_id = ?", poolID)
	}
	var rows []workWaitsRow
	if err := db.Group("waited_for").Order("waited_for").Scan(&rows).Error; err != nil {
		return ledger.WorkStarts{}, wrapError("counting what work waited for", err)
	}
	return sumWorkStarts(rows), nil
}

func sumWorkStarts(rows []workWaitsRow) ledger.WorkStarts {
	var sum ledger.WorkStarts
	boots := ledger.WorkWaits{Reason: allocation.WaitedBoot}
	for _, row := range rows {
		sum.Starts, sum.ZeroWaits = sum.Starts+row.Starts, sum.ZeroWaits+row.Starts-row.Booted
		boots.Starts, boots.Total = boots.Starts+row.Booted, boots.Total+toDuration(row.BootTime)
		if row.Reason != "" {
			sum.Waits = append(sum.Waits, ledger.WorkWaits{Reason: row.Reason, Starts: row.Starts,
				Total: toDuration(row.Queued)})
		}
	}
	if boots.Starts > 0 {
		sum.Waits = append(sum.Waits, boots)
	}
	slices.SortFunc(sum.Waits, func(a, b ledger.WorkWaits) int { return cmp.Compare(a.Reason, b.Reason) })
	return sum
}
