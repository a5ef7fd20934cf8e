package ledger

import (
	"github.com/forewarm/forewarm/core/fairshare"
)

// PoolUse is what an organization has used of a pool, as fair share counts it.
// What is still held is not in it; see shares.
type PoolUse struct {
	PoolID         string
	OrganizationID string
	Usage          fairshare.Usage
}

// Share is an organization's part of a pool.
type Share struct {
	OrganizationID string
	Weight         int
	Share          float64         // weighted dominant share of decayed use
	Factor         float64         // how many times idle time of its guesses counts
	Usage          fairshare.Usage // with what is held at this moment
}
