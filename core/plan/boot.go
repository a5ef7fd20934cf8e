package plan

import (
	"slices"
	"time"
)

// samples is how many boots a pool remembers: enough for a 95th percentile, few
// enough that a change of the provider's speed shows within days.
const samples = 64

// weight is how many real boots the prior counts for.
const weight = 4

// BootTimes is what a pool has learned about the time from asking for a node
// until it was proved ready. The zero value knows only its prior.
type BootTimes struct {
	Prior50, Prior95 time.Duration
	Seen             []time.Duration // the newest last
}

// Learn returns the times after one more boot.
func (b BootTimes) Learn(d time.Duration) BootTimes {
	seen := append(slices.Clone(b.Seen), d)
	b.Seen = seen[max(0, len(seen)-samples):]
	return b
}

// P50 returns the median.
func (b BootTimes) P50() time.Duration { return b.quantile(0.50, b.Prior50) }

// P95 returns the 95th percentile: the lead time of a promise.
func (b BootTimes) P95() time.Duration { return b.quantile(0.95, b.Prior95) }

// quantile mixes the nearest-rank quantile of what was seen with the prior, by
// their number.
func (b BootTimes) quantile(q float64, prior time.Duration) time.Duration {
	n := len(b.Seen)
	if n == 0 {
		return prior
	}
	sorted := slices.Sorted(slices.Values(b.Seen))
	rank := min(n-1, int(q*float64(n)))
	return (sorted[rank]*time.Duration(n) + prior*weight) / time.Duration(n+weight)
}
