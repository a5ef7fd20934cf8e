package sqlledger

import (
	"encoding/json"
	"fmt"

	"github.com/forewarm/forewarm/ledger"
)

type provisionerRow struct {
	Name       string `gorm:"column:name;primaryKey"`
	Offers     string `gorm:"column:offers"`
	ReportedAt int64  `gorm:"column:reported_at"`
}

func (provisionerRow) TableName() string { return "provisioners" }

const replaceProvisioner = "ON CONFLICT (name) DO UPDATE SET offers = excluded.offers, reported_at = excluded.reported_at"

func provisionerToRow(p ledger.Provisioner) provisionerRow {
	offers, _ := json.Marshal(p.Offers) // strings and numbers: it cannot fail
	return provisionerRow{Name: p.Name, Offers: string(offers), ReportedAt: micros(p.ReportedAt)}
}

func (r provisionerRow) value() (ledger.Provisioner, error) {
	p := ledger.Provisioner{Name: r.Name, ReportedAt: moment(r.ReportedAt)}
	if err := json.Unmarshal([]byte(r.Offers), &p.Offers); err != nil {
		return p, fmt.Errorf("reading the offers of %s: %w", r.Name, err)
	}
	return p, nil
}

// Provisioners returns them in the order of their names.
func (r *reader) Provisioners() ([]ledger.Provisioner, error) {
	return list[provisionerRow](r.query().Order("name"), "reading provisioners")
}
