package sqlledger

import "github.com/forewarm/forewarm/ledger"

type replayRow struct {
	Owner   string `gorm:"column:organization_id;primaryKey"` // a person or a key; of old ones an organization
	Route   string `gorm:"column:route;primaryKey"`
	Key     string `gorm:"column:key;primaryKey"`
	Hash    []byte `gorm:"column:hash"`
	Status  int    `gorm:"column:status"`
	Body    []byte `gorm:"column:body"`
	Created int64  `gorm:"column:created_at"`
}

func (replayRow) TableName() string { return "idempotency" }

func replayToRow(r ledger.Replay) replayRow {
	return replayRow{
		Owner: r.Owner, Route: r.Route, Key: r.Key, Hash: notNil(r.Hash),
		Status: r.Status, Body: notNil(r.Body), Created: toMicros(r.CreatedAt),
	}
}

func (r replayRow) toValue() (ledger.Replay, error) {
	return ledger.Replay{
		Owner: r.Owner, Route: r.Route, Key: r.Key, Hash: r.Hash,
		Status: r.Status, Body: r.Body, CreatedAt: toTime(r.Created),
	}, nil
}

// notNil keeps a nil slice from being stored as NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
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
		Request: string(p.Request), Effect: string(p.Effect), Fingerprint: p.Fingerprint,
		Created: toMicros(p.CreatedAt), Expires: toMicros(p.ExpiresAt), Applied: toMicros(p.AppliedAt),
		Status: p.Status, Answer: string(p.Answer),
	}
}

func (r previewRow) toValue() (ledger.Preview, error) {
	return ledger.Preview{
		ID: r.Head.ID, OrganizationID: r.OrganizationID, MadeBy: r.MadeBy, Kind: r.Kind, Request: []byte(r.Request),
		Effect: []byte(r.Effect), Fingerprint: r.Fingerprint,
		CreatedAt: toTime(r.Created), ExpiresAt: toTime(r.Expires), AppliedAt: toTime(r.Applied),
		Status: r.Status, Answer: []byte(r.Answer), Version: r.Head.Version,
	}, nil
}
