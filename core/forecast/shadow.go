package forecast

import "math"

// shadowBoots bounds the batches of units that boot in a shadow; beyond it two batches become one.
const shadowBoots = 3

// shadow is the fleet that one expert would have, had it decided alone. Those of the tenant's jobs that are not over
// there use its units, the newest ones wait for what is missing, and its past is told by what it cost.
type shadow struct {
	Cost   float32 // fading, in GPU-seconds: idle, boot, and the worth of waiting
	Units  int32   // ready, in use or idle
	Demand int32   // of jobs that are not over
	Boots  [shadowBoots]booting
}

// booting is a batch of units that will be ready.
type booting struct {
	Left  float32 `json:"left"` // seconds
	Units int32   `json:"units"`
}

// units that boot.
func (s *shadow) booting() int32 {
	n := int32(0)
	for i := range s.Boots {
		n += s.Boots[i].Units
	}
	return n
}

// pass lets time pass at an unchanged demand, and returns what it cost.
func (s *shadow) pass(seconds float32, worth float64, queue *queue) float64 {
	demand := s.Demand
	cost := 0.0
	for seconds > 0 {
		step, booting := seconds, int32(0)
		for i := range s.Boots {
			if b := &s.Boots[i]; b.Units > 0 {
				step, booting = min(step, max(b.Left, 0)), booting+b.Units
			}
		}
		rate := float64(max(0, s.Units-demand) + booting)
		if s.Units < demand {
			jobs, _ := queue.waiting(demand - s.Units)
			rate += worth * jobs
		}
		cost += rate * float64(step)
		seconds -= step
		s.age(step)
	}
	return cost
}

// age lets boots go on for some seconds, none of which ends before they are over.
func (s *shadow) age(seconds float32) {
	for i := range s.Boots {
		b := &s.Boots[i]
		if b.Units == 0 {
			continue
		}
		if b.Left -= seconds; b.Left <= 0 {
			s.Units += b.Units
			*b = booting{}
		}
	}
}

// follow boots and releases what a target asks for. Pending jobs get their boots in any case.
func (s *shadow) follow(target int32, boot float32) {
	want, have := max(target, s.Demand), s.Units+s.booting()
	switch {
	case have < want:
		s.boot(want-have, boot)
	case have > want:
		s.Units -= max(0, min(have-want, s.Units-s.Demand))
	}
}

// boot adds a batch; if there is no place for it, the latest one that boots takes it in.
func (s *shadow) boot(units int32, seconds float32) {
	latest := 0
	for i := range s.Boots {
		if s.Boots[i].Units == 0 {
			s.Boots[i] = booting{seconds, units}
			return
		}
		if s.Boots[i].Left > s.Boots[latest].Left {
			latest = i
		}
	}
	b := &s.Boots[latest]
	b.Left = (b.Left*float32(b.Units) + seconds*float32(units)) / float32(b.Units+units)
	b.Units += units
}

// queue remembers the newest arrivals: those that a shadow with too few units has let wait.
type queue []arrived

// arrived is a number of jobs that arrived together.
type arrived struct {
	At   int64 `json:"at"`
	Jobs int32 `json:"jobs"`
	GPUs int32 `json:"gpus"` // of all of them
}

// queueLength bounds a queue; beyond it the two oldest entries become one.
const queueLength = 8

// add counts a job.
func (q *queue) add(at int64, gpus int32) {
	if n := len(*q); n > 0 {
		if a := &(*q)[n-1]; a.At == at && a.GPUs == gpus*a.Jobs {
			a.Jobs++
			a.GPUs += gpus
			return
		}
	}
	if len(*q) == queueLength {
		(*q)[1].Jobs += (*q)[0].Jobs
		(*q)[1].GPUs += (*q)[0].GPUs
		*q = append((*q)[:0], (*q)[1:]...)
	}
	*q = append(*q, arrived{at, 1, gpus})
}

// waiting is how many jobs wait if so many GPUs are missing: the newest ones. The first of them arrived at since.
func (q *queue) waiting(missing int32) (jobs float64, since int64) {
	since = math.MaxInt64
	for i := len(*q) - 1; i >= 0 && missing > 0; i-- {
		a := (*q)[i]
		since = a.At
		if a.GPUs > missing {
			return jobs + math.Ceil(float64(missing)*float64(a.Jobs)/float64(a.GPUs)), since
		}
		jobs += float64(a.Jobs)
		missing -= a.GPUs
	}
	return jobs, since
}

// remove forgets a job that arrived at a second.
func (q *queue) remove(at int64, gpus int32) {
	for i := range *q {
		if a := &(*q)[i]; a.At == at && a.GPUs >= gpus {
			a.Jobs--
			a.GPUs -= gpus
			return
		}
	}
}

// orphan is what the wait of a job that ends still costs where it has not begun: it ended because it found its GPUs
// elsewhere.
func (s *shadow) orphan(submitted int64, worth float64, q *queue) float64 {
	if s.Units >= s.Demand {
		return 0
	}
	if _, since := q.waiting(s.Demand - s.Units); submitted < since {
		return 0
	}
	longest := float32(0)
	for i := range s.Boots {
		longest = max(longest, s.Boots[i].Left)
	}
	return worth * float64(longest)
}
