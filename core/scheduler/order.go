package scheduler

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/core/queue"
)

// Keys of overdue jobs come before all others.
const (
	overdueMajor = -1 << 40
	levelWidth   = 64 // keys of one level: a band each
	ratioScale   = 1e9
	fullAge      = 7 * 24 * time.Hour // at which age counts fully in Multifactor
)

// keyOf is where a job stands in the order. Jobs of a line stand in the order in which
// they came, whatever now is.
func (s *Scheduler) keyOf(j *Job, l *line, now time.Time) queue.Key {
	major := -int64(s.policy.Classes[j.Class].Level) * levelWidth
	gpus := float64(max(j.Request.GPUs(), 1))
	switch s.policy.Order {
	case Arrival:
		return queue.Key{Major: major, Minor: j.Submitted.UnixNano()}
	case Multifactor:
		return queue.Key{Major: major, Minor: -s.multifactor(j, l.tenant, now)}
	case ShortestPredicted:
		return queue.Key{Major: major, Minor: int64(l.predicted.Seconds() * gpus)}
	case LeastAttained:
		return queue.Key{Major: major + int64(l.band), Minor: j.Submitted.UnixNano()}
	default:
		if due := s.policy.overdue(j.Class); j.waited(now) >= due {
			return queue.Key{Major: overdueMajor, Minor: j.Submitted.Add(due).UnixNano()}
		}
		return queue.Key{Major: major + int64(l.band), Minor: -s.ratio(j, l, now)}
	}
}

// ratio is Balanced's: how long it has waited for how little it asks. It has no sum of a
// product, which processors may round differently.
func (s *Scheduler) ratio(j *Job, l *line, now time.Time) int64 {
	soft := s.policy.Softening
	asked := (l.predicted + soft).Seconds() * float64(max(j.Request.GPUs(), 1))
	use := 1 + float64(s.policy.ShareWeight*l.tenant.over)
	value := float64(l.tenant.Weight) * (j.waited(now) + soft).Seconds() / asked / use
	return int64(min(value*ratioScale, math.MaxInt64/2))
}

// multifactor is the sum of age and fair share, of a thousand points each.
func (s *Scheduler) multifactor(j *Job, t *tenant, now time.Time) int64 {
	age := min(now.Sub(j.Submitted).Seconds()/fullAge.Seconds(), 1)
	return int64(age*ratioScale) + int64(math.Exp2(-t.over)*ratioScale)
}
