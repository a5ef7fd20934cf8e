package scheduler

import (
	"math"
	"time"

	"github.com/forewarm/forewarm/core/queue"
)

const (
	levelWidth = 64 // keys of one level: a band each, and the last one of the level above it is that of overdue jobs
	ratioScale = 1e9
)

// keyOf is where a job of the line stands in the order. Jobs of a line stand in the order
// in which they came, whatever now is.
func (s *Scheduler) keyOf(j standing, l *line, now time.Time) queue.Key {
	switch s.policy.Order {
	case Arrival:
		return queue.Key{Major: l.major, Minor: j.eligible}
	case Multifactor:
		return queue.Key{Major: l.major, Minor: -s.policy.Factors.points(j, s.accounts.fairShare(l.user), now)}
	case ShortestPredicted:
		gpus := float64(max(l.gpus, 1))
		return queue.Key{Major: l.major, Minor: int64(l.predicted.Seconds() * gpus)}
	case LeastAttained:
		return queue.Key{Major: l.places, Minor: j.eligible}
	default:
		return queue.Key{Major: l.places, Minor: -s.ratio(j, l, now)}
	}
}

// due is when the job of the line has waited for too long; false if it is not there yet,
// or nobody ever has.
func (s *Scheduler) due(j standing, l *line, now time.Time) (instant int64, overdue bool) {
	at := j.eligible + int64(j.attained+l.overdue)
	return at, s.policy.Order == Balanced && at <= now.UnixNano()
}

// ratio is Balanced's: how long it has waited for how little it asks. It has no sum of a
// product, which processors may round differently.
func (s *Scheduler) ratio(j standing, l *line, now time.Time) int64 {
	worth := float64(l.user.tenant.Weight) * (j.waited(now) + s.policy.Softening).Seconds()
	value := worth / l.asked / s.accounts.use(l.user)
	return int64(min(value*ratioScale, math.MaxInt64/2))
}

// points is the sum of age and fair share, each by its weight. Each becomes whole by itself: a sum of products may be
// rounded differently by different processors.
func (f Factors) points(j standing, fairShare int64, now time.Time) int64 {
	age := min(time.Duration(now.UnixNano()-j.eligible).Seconds()/f.FullAge.Seconds(), 1)
	return int64(age*ratioScale*f.Age) + int64(float64(fairShare)*f.Share)
}

// Order returns the ids of the jobs that wait and may start, in the order in which a cycle looks at
// them.
func (s *Scheduler) Order(now time.Time) []string {
	s.accounts.weigh(now)
	var all places
	push := func(l *line) {
		if l.next < len(l.jobs) {
			w := l.jobs[l.next]
			all.push(place{Key: rankIn(s, standingOf(&w.Job), l, now).Key, job: w})
		}
	}
	for _, p := range s.piles {
		for _, l := range p.lines {
			l.next = 0
			push(l)
		}
	}
	ids := make([]string, 0, len(s.jobs))
	for len(all) > 0 {
		w := all.pop().job
		ids = append(ids, w.ID)
		w.line.next++
		push(w.line)
	}
	return ids
}

// place is where somebody stands in the order of a cycle.
type place struct {
	queue.Key
	job  *waiter
	pile *pile // of which it is the best job; nil: it stands for itself
}

// before puts the smaller key first, then who came first, then the smaller id.
func (a place) before(b place) bool {
	if a.Major != b.Major {
		return a.Major < b.Major
	}
	if a.Minor != b.Minor {
		return a.Minor < b.Minor
	}
	return compareJobs(a.job, b.job) < 0
}

// places is a heap of places: one of each pile, and the promised jobs.
type places []place

func (h *places) push(p place) {
	*h = append(*h, p)
	all := *h
	for i := len(all) - 1; i > 0; {
		parent := (i - 1) / 2
		if !all[i].before(all[parent]) {
			return
		}
		all[i], all[parent] = all[parent], all[i]
		i = parent
	}
}

func (h *places) pop() place {
	all := *h
	first, last := all[0], len(all)-1
	all[0] = all[last]
	all[last] = place{}
	*h = all[:last]
	h.descend()
	return first
}

// descend brings the first place to where it belongs.
func (h *places) descend() {
	all := *h
	for i := 0; ; {
		child := 2*i + 1
		if child+1 < len(all) && all[child+1].before(all[child]) {
			child++
		}
		if child >= len(all) || !all[child].before(all[i]) {
			return
		}
		all[i], all[child] = all[child], all[i]
		i = child
	}
}
