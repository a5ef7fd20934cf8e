package sqlledger

import (
	"slices"

	"github.com/forewarm/forewarm/core/queue"
	"github.com/forewarm/forewarm/ledger"
)

type entriesRow struct {
	Who    string `gorm:"column:who;primaryKey"`
	FullAt int64  `gorm:"column:full_at"`
	Day    int64  `gorm:"column:day"`
	Count  int    `gorm:"column:count"`
}

func (entriesRow) TableName() string { return "job_entries" }

const replaceEntries = "ON CONFLICT (who) DO UPDATE SET full_at = excluded.full_at, day = excluded.day, " +
	"count = excluded.count"

func entriesToRow(e ledger.JobEntries) entriesRow {
	return entriesRow{Who: e.Who, FullAt: toMicros(e.Entries.FullAt), Day: e.Entries.Day, Count: e.Entries.Count}
}

func (r entriesRow) toValue() (ledger.JobEntries, error) {
	return ledger.JobEntries{Who: r.Who, Entries: queue.Entries{FullAt: toTime(r.FullAt), Day: r.Day,
		Count: r.Count}}, nil
}

func (r jobReader) JobEntries(who string) (ledger.JobEntries, error) {
	e, found, err := findRow[entriesRow](r.newQuery().Where("who = ?", who), "reading how much "+who+" has submitted")
	if err != nil || !found {
		return ledger.JobEntries{Who: who}, err
	}
	return e, nil
}

// lastOfEach are the last rows of each who: one statement may not change a row twice.
func lastOfEach(all []entriesRow) []entriesRow {
	var out []entriesRow
	for i, r := range all {
		if !slices.ContainsFunc(all[i+1:], func(later entriesRow) bool { return later.Who == r.Who }) {
			out = append(out, r)
		}
	}
	return out
}
