package sqlledger

import (
	"unicode/utf8"

	"github.com/forewarm/forewarm/ledger"
)

// JournalEnd reads the end of the index.
func (r *reader) JournalEnd() (int64, error) {
	var end int64
	err := r.query().Raw("SELECT COALESCE(MAX(seq), 0) FROM events").Scan(&end).Error
	return end, wrap("reading the journal's end", err)
}

// Events returns events that no open transaction can still precede, so that a
// reader who remembers the last number it saw misses none. On PostgreSQL that
// leaves out those of the calling transaction.
func (r *reader) Events(s ledger.Scope, f ledger.EventFilter, limit int) ([]ledger.Event, error) {
	db := scoped(r.query(), s, tenant).Where("seq > ?", f.After)
	if r.store.dialect.overtakes {
		marks, err := r.store.settled(r.db.Statement.Context)
		if err != nil {
			return nil, err
		}
		db = db.Where(settledSQL, marks...)
	}
	if f.Subject != "" {
		db = db.Where("subject = ?", f.Subject)
	}
	if f.Type != "" {
		db = db.Where("substr(type, 1, ?) = ?", utf8.RuneCountInString(f.Type), f.Type)
	}
	return list[eventRow](db.Omit("decision").Order("seq").Limit(pageSize(limit)), "reading events")
}
