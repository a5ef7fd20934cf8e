package sqlledger

import "github.com/forewarm/forewarm/ledger"

type pauseRow struct {
	OrganizationID string `gorm:"column:organization_id;primaryKey"`
	Reason         string `gorm:"column:reason"`
	By             string `gorm:"column:paused_by"`
	At             int64  `gorm:"column:paused_at"`
	Until          int64  `gorm:"column:until"`
}

func (pauseRow) TableName() string { return "prewarm_pauses" }

func (r pauseRow) toValue() (ledger.Pause, error) {
	return ledger.Pause{OrganizationID: r.OrganizationID, Reason: r.Reason, By: r.By, At: toTime(r.At),
		Until: toTime(r.Until)}, nil
}

// Pauses returns the pauses that hold now.
func (r *reader) Pauses() ([]ledger.Pause, error) {
	db := r.newQuery().Where("until = 0 OR until > ?", toMicros(r.Now())).Order("organization_id")
	return listRows[pauseRow](db, "reading what is paused")
}

func pauseToRow(p ledger.Pause) pauseRow {
	return pauseRow{OrganizationID: p.OrganizationID, Reason: p.Reason, By: p.By, At: toMicros(p.At),
		Until: toMicros(p.Until)}
}
