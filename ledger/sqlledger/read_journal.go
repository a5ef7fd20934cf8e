package sqlledger

import (
	"unicode/utf8"

	"github.com/forewarm/forewarm/ledger"
)

// journalReader reads events, their decision records and their seals.
type journalReader struct{ *connection }

// Events returns events that no open transaction can still precede, so that a
// reader who remembers the last number it has seen misses none. On PostgreSQL that
// leaves out the calling transaction's own.
func (r journalReader) Events(s ledger.Scope, f ledger.EventFilter, limit int) ([]ledger.Event, error) {
	rule, marks, err := r.settledCondition()
	if err != nil {
		return nil, err
	}
	db := r.ownRows(s).Where("seq > ?", f.After).Where(rule, marks...)
	if f.Subject != "" {
		db = db.Where("subject = ?", f.Subject)
	}
	if f.Type != "" {
		db = db.Where("substr(type, 1, ?) = ?", utf8.RuneCountInString(f.Type), f.Type)
	}
	return listRows[eventRow](db.Omit("decision").Order("seq").Limit(pageSize(limit)), "reading events")
}

// settledCondition returns a condition for events that may be shown. A reader that
// follows events reads nothing else, so the look at how far the journal is settled
// comes before its snapshot. A reader that reads other things too reads events only
// once, and is content with those before the oldest open transaction.
func (r journalReader) settledCondition() (string, []any, error) {
	switch {
	case !r.store.dialect.overtakes:
		return "1 = 1", nil, nil
	case r.queried:
		return "xid < pg_snapshot_xmin(pg_current_snapshot())", nil, nil
	}
	marks, err := r.store.settledMarks(r.db.Statement.Context)
	return settledSQL, marks, err
}

// JournalEnd reads the end of the index.
func (r journalReader) JournalEnd() (int64, error) {
	var end int64
	err := r.newQuery().Raw("SELECT COALESCE(MAX(seq), 0) FROM events").Scan(&end).Error
	return end, wrapError("reading the journal's end", err)
}

// Journal returns whole events, with their decision records.
func (r journalReader) Journal(after, last int64, limit int) ([]ledger.Event, error) {
	rule, marks := "seq <= ?", []any{last}
	if last == 0 {
		var err error
		if rule, marks, err = r.settledCondition(); err != nil {
			return nil, err
		}
	}
	return listRows[eventRow](r.newQuery().Where("seq > ?", after).Where(rule, marks...).Order("seq").Limit(limit),
		"reading the journal")
}

// Decisions returns the newest events with a decision record first. Its reader
// remembers no number, unlike a reader that follows events, so it may see events
// that open transactions can still precede.
func (r journalReader) Decisions(s ledger.Scope, f ledger.DecisionFilter, limit int) ([]ledger.Event, error) {
	db := r.ownRows(s).Where("decision <> ''")
	for column, value := range map[string]string{"subject": f.Subject, "pool_id": f.PoolID, "actor": f.Actor} {
		if value != "" {
			db = db.Where(column+" = ?", value)
		}
	}
	if f.Before > 0 {
		db = db.Where("seq < ?", f.Before)
	}
	if f.Seq > 0 {
		db = db.Where("seq = ?", f.Seq)
	}
	if f.Kind != "" {
		begins := ledger.DecisionPrefix(f.Kind)
		db = db.Where("substr(decision, 1, ?) = ?", utf8.RuneCountInString(begins), begins)
	}
	return listRows[eventRow](db.Order("seq DESC").Limit(pageSize(limit)), "reading decisions")
}

// LastSeal reads the end of the index.
func (r journalReader) LastSeal() (ledger.Seal, error) {
	last, _, err := findRow[sealRow](r.newQuery().Order("number DESC"), "reading the last seal")
	return last, err
}

func (r journalReader) Seals(after int64, limit int) ([]ledger.Seal, error) {
	return listRows[sealRow](r.newQuery().Where("number > ?", after).Order("number").Limit(limit), "reading seals")
}
