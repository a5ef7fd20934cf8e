package main

import (
	"slices"
	"time"
)

// predictor knows what jobs that have ended took, and nothing else: the median of the
// last fifty of the same tenant and size, or of what is less alike where those are few.
type predictor struct {
	recent map[likeness][]int64
}

// likeness is whose jobs are alike; what is -1 does not matter.
type likeness struct{ tenant, gpus int }

const (
	remembered = 50
	enough     = 3
)

func (p *predictor) likenesses(j job) []likeness {
	return []likeness{{j.Tenant, j.GPUs}, {-1, j.GPUs}, {-1, -1}}
}

// observe notes that a job has ended.
func (p *predictor) observe(j job) {
	for _, l := range p.likenesses(j) {
		all := append(p.recent[l], j.Duration)
		p.recent[l] = all[max(0, len(all)-remembered):]
	}
}

// predict returns how long a job is likely to take, at most its limit.
func (p *predictor) predict(j job) time.Duration {
	for _, l := range p.likenesses(j) {
		if all := p.recent[l]; len(all) >= enough {
			sorted := slices.Sorted(slices.Values(all))
			return seconds(min(sorted[len(sorted)/2], j.limit))
		}
	}
	return seconds(j.limit)
}
