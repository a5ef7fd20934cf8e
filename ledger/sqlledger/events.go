package sqlledger

import (
	"unicode/utf8"

	"github.com/forewarm/forewarm/ledger"
)

// JournalEnd reads the end of the index.
func (r *reader) JournalEnd() (int64, error) {
	var end int64
	err := r.newQuery().Raw("SELECT COALESCE(MAX(seq), 0) FROM events").Scan(&end).Error
	return end, wrapError("reading the journal's end", err)
}

// settledCondition returns a condition for events that may be shown. A follower asks for
// nothing else, so that the look at how far things are comes before its snapshot.
// Who reads events beside other things reads them once, and is content with those
// of transactions before which all are over.
func (r *reader) settledCondition() (string, []any, error) {
	switch {
	case !r.store.dialect.overtakes:
		return "1 = 1", nil, nil
	case r.queried:
		return "xid < pg_snapshot_xmin(pg_current_snapshot())", nil, nil
	}
	marks, err := r.store.settledMarks(r.db.Statement.Context)
	return settledSQL, marks, err
}

// Events returns events that no open transaction can still precede, so that a
// reader who remembers the last number it saw misses none. On PostgreSQL that
// leaves out those of the calling transaction.
func (r *reader) Events(s ledger.Scope, f ledger.EventFilter, limit int) ([]ledger.Event, error) {
	rule, marks, err := r.settledCondition()
	if err != nil {
		return nil, err
	}
	db := inScope(r.newQuery(), s, tenantColumn).Where("seq > ?", f.After).Where(rule, marks...)
	if f.Subject != "" {
		db = db.Where("subject = ?", f.Subject)
	}
	if f.Type != "" {
		db = db.Where("substr(type, 1, ?) = ?", utf8.RuneCountInString(f.Type), f.Type)
	}
	return listRows[eventRow](db.Omit("decision").Order("seq").Limit(pageSize(limit)), "reading events")
}
