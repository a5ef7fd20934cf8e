package sqlledger

import (
	"unicode/utf8"

	"github.com/forewarm/forewarm/ledger"
)

// Decisions returns the newest events with a decision record first. Unlike a
// follower of events, its reader remembers nothing, so that it may see those
// which open transactions can still precede.
func (r *reader) Decisions(s ledger.Scope, f ledger.DecisionFilter, limit int) ([]ledger.Event, error) {
	db := inScope(r.newQuery(), s, tenantColumn).Where("decision <> ''")
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

type previewRow struct {
	Head           rowHead `gorm:"embedded"`
	OrganizationID string  `gorm:"column:organization_id"`
	MadeBy         string  `gorm:"column:made_by"`
	Kind           string  `gorm:"column:kind"`
	Request        string  `gorm:"column:request"`
	Effect         string  `gorm:"column:effect"`
	Fingerprint    string  `gorm:"column:fingerprint"`
	Created        int64   `gorm:"column:created_at"`
	Expires        int64   `gorm:"column:expires_at"`
	Applied        int64   `gorm:"column:applied_at"`
	Status         int     `gorm:"column:status"`
	Answer         string  `gorm:"column:answer"`
}

func (previewRow) TableName() string  { return "plans" }
func (r previewRow) rowHead() rowHead { return r.Head }

func previewToRow(p ledger.Preview) previewRow {
	return previewRow{
		Head: nextVersion(p.ID, p.Version), OrganizationID: p.OrganizationID, MadeBy: p.MadeBy, Kind: p.Kind,
		Request: string(p.Request), Effect: string(p.Effect), Fingerprint: p.Fingerprint, Created: toMicros(p.CreatedAt),
		Expires: toMicros(p.ExpiresAt),
		Applied: toMicros(p.AppliedAt), Status: p.Status, Answer: string(p.Answer),
	}
}

func (r previewRow) toValue() (ledger.Preview, error) {
	return ledger.Preview{
		ID: r.Head.ID, OrganizationID: r.OrganizationID, MadeBy: r.MadeBy, Kind: r.Kind, Request: []byte(r.Request),
		Effect: []byte(r.Effect), Fingerprint: r.Fingerprint, CreatedAt: toTime(r.Created), ExpiresAt: toTime(r.Expires),
		AppliedAt: toTime(r.Applied),
		Status:    r.Status, Answer: []byte(r.Answer), Version: r.Head.Version,
	}, nil
}

func (r *reader) Preview(s ledger.Scope, id string) (ledger.Preview, error) {
	return readRow[previewRow](inScope(r.newQuery(), s, tenantColumn).Where("id = ?", id), "reading plan "+id)
}
