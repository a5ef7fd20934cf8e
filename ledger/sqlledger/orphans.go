package sqlledger

import (
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/ledger"
)

type orphanRow struct {
	Provisioner string `gorm:"column:provisioner;primaryKey"`
	Machine     string `gorm:"column:machine;primaryKey"`
	NodeID      string `gorm:"column:node_id"`
	Region      string `gorm:"column:region"`
	Type        string `gorm:"column:type"`
	GPUs        int    `gorm:"column:gpus"`
	Price       int64  `gorm:"column:price"`
	MinBilling  int64  `gorm:"column:min_billing"`
	BilledFrom  int64  `gorm:"column:billed_from"`
	BilledUntil int64  `gorm:"column:billed_until"`
}

func (orphanRow) TableName() string { return "orphans" }

// replaceOrphan keeps the birth that was written down first: a provider that
// does not say it would have it grow younger.
const replaceOrphan = "ON CONFLICT (provisioner, machine) DO UPDATE SET billed_until = excluded.billed_until"

func orphanToRow(o ledger.Orphan) orphanRow {
	return orphanRow{
		Provisioner: o.Source.Provisioner, Machine: o.Machine, NodeID: o.NodeID, Region: o.Source.Region,
		Type: o.Source.Type,
		GPUs: o.GPUs, Price: int64(o.Source.Price), MinBilling: o.Source.MinBilling.Microseconds(),
		BilledFrom: toMicros(o.BilledFrom), BilledUntil: toMicros(o.BilledUntil),
	}
}

func (r orphanRow) toValue() (ledger.Orphan, error) {
	return ledger.Orphan{
		Machine: r.Machine, NodeID: r.NodeID, GPUs: r.GPUs,
		Source: capacity.Offering{Provisioner: r.Provisioner, Region: r.Region, Type: r.Type,
			Price: money.MicroUSD(r.Price), MinBilling: toDuration(r.MinBilling)},
		BilledFrom: toTime(r.BilledFrom), BilledUntil: toTime(r.BilledUntil),
	}, nil
}

// Orphans returns them in the order of their key.
func (r *reader) Orphans(f ledger.OrphanFilter) ([]ledger.Orphan, error) {
	db := r.newQuery().Order("provisioner, machine")
	if f.Provisioner != "" {
		db = db.Where("provisioner = ?", f.Provisioner)
	}
	if f.Standing {
		db = db.Where("billed_until = 0")
	}
	return listRows[orphanRow](db, "reading orphans")
}
