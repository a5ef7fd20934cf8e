package sqlledger

import (
	"gorm.io/gorm"

	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// submittedWithin are the jobs that were submitted within the times of a filter. Their ids have about the same time, so
// that an index by id ends the walk: there is none by submitted_at.
func submittedWithin(db *gorm.DB, f ledger.JobFilter) *gorm.DB {
	if !f.Since.IsZero() {
		db = db.Where("submitted_at >= ?", toMicros(f.Since)).
			Where("id >= ?", ids.First(ids.Job, f.Since.Add(-clocksApart)))
	}
	if !f.Until.IsZero() {
		db = db.Where("submitted_at < ?", toMicros(f.Until)).
			Where("id < ?", ids.First(ids.Job, f.Until.Add(clocksApart)))
	}
	return db
}
