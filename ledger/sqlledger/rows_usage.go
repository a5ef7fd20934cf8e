package sqlledger

import (
	"encoding/json"
	"fmt"

	"github.com/forewarm/forewarm/core/fairshare"
	"github.com/forewarm/forewarm/ledger"
)

type usageRow struct {
	PoolID         string `gorm:"column:pool_id;primaryKey"`
	OrganizationID string `gorm:"column:organization_id;primaryKey"`
	Usage          string `gorm:"column:usage"`
}

func (usageRow) TableName() string { return "usages" }

func usageToRow(u ledger.PoolUse) usageRow {
	text, err := json.Marshal(u.Usage)
	if err != nil {
		text = []byte("{}") // a time and finite numbers can always be encoded
	}
	return usageRow{PoolID: u.PoolID, OrganizationID: u.OrganizationID, Usage: string(text)}
}

func (r usageRow) toValue() (ledger.PoolUse, error) {
	var u fairshare.Usage
	if err := json.Unmarshal([]byte(r.Usage), &u); err != nil {
		return ledger.PoolUse{}, fmt.Errorf("reading column usage: %w", err)
	}
	return ledger.PoolUse{PoolID: r.PoolID, OrganizationID: r.OrganizationID, Usage: u}, nil
}

// replaceUsage replaces what was known of an organization's use of a pool.
const replaceUsage = "ON CONFLICT (pool_id, organization_id) DO UPDATE SET usage = excluded.usage"
