package learned

import (
	"slices"
	"time"
)

// WholeLease is a whole lease, in the units of LeaseUse: millionths.
const WholeLease = 1e6

// LeaseUse is what a pool has learned about how much of their leases people use
// before they give them back.
type LeaseUse struct {
	Seen []time.Duration `json:"seen,omitempty"` // millionths of the lease, the newest last
}

// Learn returns the use after one more lease ended, having been held for a time.
func (l LeaseUse) Learn(held, lease time.Duration) LeaseUse {
	if lease <= 0 {
		return l
	}
	part := time.Duration(min(1, max(0, float64(held)/float64(lease))) * WholeLease)
	seen := append(slices.Clone(l.Seen), part)
	return LeaseUse{Seen: seen[max(0, len(seen)-samples):]}
}

// Distribution is the distribution of the part that is used; before anything was seen,
// every part is as likely as any other.
func (l LeaseUse) Distribution() *Distribution {
	w := weightByAge(l.Seen)
	return newDistribution(func(q float64) float64 {
		if len(w) == 0 {
			return q * WholeLease
		}
		part, _ := interpolateQuantile(w, q)
		return part
	})
}
