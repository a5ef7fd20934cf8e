package sqlledger

import "github.com/forewarm/forewarm/ledger"

type sealRow struct {
	Number   int64  `gorm:"column:number;primaryKey"`
	Format   int    `gorm:"column:format"`
	KeyID    string `gorm:"column:key_id"`
	First    int64  `gorm:"column:first"`
	Last     int64  `gorm:"column:last"`
	Count    int    `gorm:"column:count"`
	SealedAt int64  `gorm:"column:sealed_at"`
	Tags     string `gorm:"column:tags"`
	MAC      string `gorm:"column:mac"`
}

func (sealRow) TableName() string { return "journal_seals" }

func sealToRow(s ledger.Seal) sealRow {
	return sealRow{
		Number: s.Number, Format: s.Format, KeyID: s.KeyID, First: s.First, Last: s.Last, Count: s.Count,
		SealedAt: toMicros(s.SealedAt), Tags: ledger.SealText(s.Tags), MAC: ledger.SealText(s.MAC),
	}
}

func (r sealRow) toValue() (ledger.Seal, error) {
	return ledger.Seal{
		Number: r.Number, Format: r.Format, KeyID: r.KeyID, First: r.First, Last: r.Last, Count: r.Count,
		SealedAt: toTime(r.SealedAt), Tags: ledger.SealBytes(r.Tags), MAC: ledger.SealBytes(r.MAC),
	}, nil
}

// Journal returns events with everything that they say.
func (r *reader) Journal(after, last int64, limit int) ([]ledger.Event, error) {
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

// LastSeal reads the end of the index.
func (r *reader) LastSeal() (ledger.Seal, error) {
	newest, err := listRows[sealRow](r.newQuery().Order("number DESC").Limit(1), "reading the last seal")
	if err != nil || len(newest) == 0 {
		return ledger.Seal{}, err
	}
	return newest[0], nil
}

func (r *reader) Seals(after int64, limit int) ([]ledger.Seal, error) {
	return listRows[sealRow](r.newQuery().Where("number > ?", after).Order("number").Limit(limit), "reading seals")
}
