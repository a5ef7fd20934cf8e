package ledger

import (
	"github.com/forewarm/forewarm/core/quota"
)

// SumOf adds up what keys and schedules made or hold.
func (c *Commitments) SumOf(ids []string) *quota.Commitments {
	parts := make([]*quota.Commitments, len(ids))
	for i, id := range ids {
		parts[i] = c.ByKey[id]
	}
	return quota.Sum(parts)
}
