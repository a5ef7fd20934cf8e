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

type userUsageRow struct {
	PoolID         string `gorm:"column:pool_id;primaryKey"`
	OrganizationID string `gorm:"column:organization_id;primaryKey"`
	UserID         string `gorm:"column:user_id;primaryKey"`
	Usage          string `gorm:"column:usage"`
}

func (userUsageRow) TableName() string { return "user_usages" }

// usageRows parts what organizations used from what users did.
func usageRows(all []ledger.PoolUse) (organizations []usageRow, users []userUsageRow) {
	for _, u := range all {
		text, err := json.Marshal(u.Usage)
		if err != nil {
			text = []byte("{}") // a time and finite numbers can always be encoded
		}
		if u.UserID == "" {
			organizations = append(organizations, usageRow{u.PoolID, u.OrganizationID, string(text)})
		} else {
			users = append(users, userUsageRow{u.PoolID, u.OrganizationID, u.UserID, string(text)})
		}
	}
	return organizations, users
}

func (r usageRow) toValue() (ledger.PoolUse, error) {
	return userUsageRow{PoolID: r.PoolID, OrganizationID: r.OrganizationID, Usage: r.Usage}.toValue()
}

func (r userUsageRow) toValue() (ledger.PoolUse, error) {
	var u fairshare.Usage
	if err := json.Unmarshal([]byte(r.Usage), &u); err != nil {
		return ledger.PoolUse{}, fmt.Errorf("reading column usage: %w", err)
	}
	return ledger.PoolUse{PoolID: r.PoolID, Usage: u,
		Account: ledger.Account{OrganizationID: r.OrganizationID, UserID: r.UserID}}, nil
}

// These replace what was known of somebody's use of a pool.
const (
	replaceUsage     = "ON CONFLICT (pool_id, organization_id) DO UPDATE SET usage = excluded.usage"
	replaceUserUsage = "ON CONFLICT (pool_id, organization_id, user_id) DO UPDATE SET usage = excluded.usage"
)
