package forecast

import (
	"math"
	"math/bits"
)

const (
	delays       = 8                          // stretches of time that are told apart: up to 16 s, 32 s and so on
	firstDelay   = 16                         // seconds
	longestDelay = firstDelay << (delays - 1) // what has not been followed then is not counted as followed
	oneMore      = 0.98                       // the part of each count that is left when one more is counted
)

// successorStats is how what ended in some way was followed of late.
type successorStats struct {
	Delays    [delays]float32 `json:"delays"`    // how often, by the seconds after the end
	Abandoned float32         `json:"abandoned"` // how often not,
	Excess    float32         `json:"excess"`    // and by how many GPUs more than it had, as a part of these
}

// ratio is how many GPUs come after one.
func (s *successorStats) ratio() float64 { return 1 + float64(s.Excess) }

func (s *successorStats) countRatio(ratio float32) { s.Excess += ratioShare * (ratio - 1 - s.Excess) }

func (s *successorStats) countFollowed(seconds int64) {
	s.fade()
	s.Delays[min(delays-1, bits.Len64(uint64(max(0, seconds-1))/firstDelay))]++
}

func (s *successorStats) countAbandoned() {
	s.fade()
	s.Abandoned++
}

func (s *successorStats) fade() {
	for i := range s.Delays {
		s.Delays[i] *= oneMore
	}
	s.Abandoned *= oneMore
}

// unheard is how often something was not followed, before anything is known.
const unheard = 1

// after is how often something was followed within each stretch, of what had not been for so many seconds, as a part
// of all of that.
func (s *successorStats) after(age float64) (chances [delays]float64) {
	total, from := unheard+float64(s.Abandoned), 0.0
	for i, n := range s.Delays {
		to := endOfDelay(i)
		if age < to {
			chances[i] = float64(n) * (to - max(age, from)) / (to - from)
			total += chances[i]
		}
		from = to
	}
	for i := range chances {
		chances[i] /= total
	}
	return chances
}

func endOfDelay(i int) float64 { return float64(int64(firstDelay) << i) }

// chance is that of being followed at all after so many seconds without.
func (s *successorStats) chance(age float64) float64 {
	sum := 0.0
	for _, p := range s.after(age) {
		sum += p
	}
	return sum
}

// awaited are GPUs that are likely to be used again soon.
type awaited struct {
	gpus    int
	jobs    float64         // for each of them
	ends    [delays]float64 // of stretches of time, in seconds from now,
	chances [delays]float64 // and the chance that they are used again by then
	least   float64         // what using one must save for holding it to pay, in seconds of idling
}

// await looks at GPUs that were last in use so many seconds ago. Holding one up to the end of a stretch costs its
// idling, and saves its boot and the wait if it is used again by then: what pays up to one of them pays now (optimal
// stopping, over the delays that were seen).
func (s *successorStats) await(gpus int, jobs, age float64) awaited {
	a := awaited{gpus: gpus, jobs: jobs, least: math.Inf(1)}
	p, idle, from := 0.0, 0.0, 0.0
	for i, chance := range s.after(age) {
		to := max(0, endOfDelay(i)-age)
		p += chance
		idle += chance * (from + to) / 2
		if p > 0 {
			a.least = min(a.least, (idle+(1-p)*to)/p)
		}
		a.ends[i], a.chances[i] = to, p
		from = to
	}
	return a
}

// within is the chance that they are used again within so many seconds.
func (a *awaited) within(seconds float64) float64 {
	from, before := 0.0, 0.0
	for i, to := range a.ends {
		if seconds < to {
			return before + (a.chances[i]-before)*(seconds-from)/(to-from)
		}
		from, before = to, a.chances[i]
	}
	return before
}

// awaitedGPUs are all that are likely to be used again.
func (o *Outlook) awaitedGPUs() (n int) {
	for i := range o.awaited {
		n += o.awaited[i].gpus
	}
	return n
}

// worthAwaiting is how many of them it pays to hold.
func (o *Outlook) worthAwaiting(p Prices) (n int) {
	boot := p.Boot * o.clockRate()
	for i := range o.awaited {
		if a := &o.awaited[i]; boot*(1+p.WaitWorth*a.jobs) > a.least {
			n += a.gpus
		}
	}
	return n
}

// addAwaited takes it into the chances of each level, within so many seconds of the model's clock, that awaited GPUs
// are used again.
func (o *Outlook) addAwaited(tail []float64, seconds float64) {
	for i := range o.awaited {
		a := &o.awaited[i]
		p := a.within(seconds)
		for k := len(tail); k >= 1; k-- {
			with := 1.0
			if k > a.gpus {
				with = tail[k-a.gpus-1]
			}
			tail[k-1] += p * (with - tail[k-1])
		}
	}
}

// isSound reports whether it can have come from counting.
func (s *successorStats) isSound() bool {
	sound := isAmount(float64(s.Abandoned)) && s.Excess >= -1 && !math.IsInf(float64(s.Excess), 0)
	for _, n := range s.Delays {
		sound = sound && isAmount(float64(n))
	}
	return sound
}
