package sqlledger

import "github.com/forewarm/forewarm/ledger"

type eventRow struct {
	Seq            int64  `gorm:"column:seq;primaryKey;autoIncrement"`
	OrganizationID string `gorm:"column:organization_id"`
	At             int64  `gorm:"column:at"`
	Type           string `gorm:"column:type"`
	Subject        string `gorm:"column:subject"`
	PoolID         string `gorm:"column:pool_id"`
	Actor          string `gorm:"column:actor"`
	Via            string `gorm:"column:via"`
	Reason         string `gorm:"column:reason"`
	Message        string `gorm:"column:message"`
	Decision       string `gorm:"column:decision"`
}

func (eventRow) TableName() string { return "events" }

func eventToRow(e ledger.Event) eventRow {
	return eventRow{
		OrganizationID: e.OrganizationID, At: toMicros(e.At), Type: e.Type, Subject: e.Subject,
		PoolID: e.PoolID, Actor: e.Actor, Via: e.Via, Reason: e.Reason, Message: e.Message,
		Decision: string(e.Decision),
	}
}

func (r eventRow) toValue() (ledger.Event, error) {
	e := ledger.Event{
		Seq: r.Seq, OrganizationID: r.OrganizationID, At: toTime(r.At), Type: r.Type, Subject: r.Subject,
		PoolID: r.PoolID, Actor: r.Actor, Via: r.Via, Reason: r.Reason, Message: r.Message,
	}
	if r.Decision != "" {
		e.Decision = []byte(r.Decision)
	}
	return e, nil
}

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
