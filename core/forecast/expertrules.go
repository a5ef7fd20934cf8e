package forecast

import (
	"fmt"
	"math"
)

// The experts, by their numbers.
const (
	ownHalf   = iota // our own decision at half the worth of waiting,
	own              // at the worth itself,
	ownDouble        // at twice
	ownFour          // and at four times the worth
	threshold        // a level is worth a chance of the hazard
	larger           // what holds more of own and threshold
	keep27           // keep-alives for a part of the break-even time
	keep9
	keep3
	keep1
	ewma30 // a moving mean of the demand, and standard deviations
	ewma120
	nothing
	byClock    // what comes by the clock,
	ownOrTable // and what holds more of own and it
	experts    // how many there are
)

var (
	// ownTimes are the multiples of the worth of waiting at which our own decision is made.
	ownTimes = [4]float64{0.5, 1, 2, 4}
	// keepParts divide the time for which idling costs as much as a boot and the wait for it.
	keepParts = [4]float64{27, 9, 3, 1}
	// meanLives are the half-lives of the moving means, in seconds.
	meanLives = [2]float64{1800, 7200}
)

// usualCost is what an expert usually costs, in units of what the best one costs.
func usualCost(expert int) float64 {
	switch expert {
	case own, ownDouble:
		return 1
	case ownHalf, ownFour, threshold, larger, ownOrTable:
		return 1.05
	default:
		return 1.2
	}
}

// wantsOf is how many GPUs beyond the demand, and those that are awaited, an expert wants that holds so many, by what
// the forecasters want. A keep-alive boots none: where it takes over, it keeps what is there.
func (s *Shadows) wantsOf(expert int, forecast *[forecasters]int, held, most int) int {
	switch expert {
	case nothing:
		return 0
	case ownHalf, own, ownDouble, ownFour, threshold:
		return forecast[expert]
	case larger:
		return max(forecast[own], forecast[threshold])
	case byClock:
		return s.wantedByClock(most)
	case ownOrTable:
		return max(forecast[own], s.wantedByClock(most))
	case keep27, keep9, keep3, keep1:
		since := s.tenant.past.Last - int64(s.keepSeconds(expert))
		return max(0, min(held, most, s.tenant.past.Steps.usedSince(since)-s.tenant.past.Demand))
	default:
		m := &s.state.Means[expert-ewma30]
		level := float64(m[0]) + s.sigmas()*math.Sqrt(float64(m[1]))
		return max(0, min(most, int(math.Ceil(level-1e-9))-s.tenant.past.Demand))
	}
}

// keepSeconds is for how long a keep-alive keeps, by the model's clock.
func (s *Shadows) keepSeconds(expert int) float64 {
	return s.experts.boot * (1 + s.experts.worth) / keepParts[expert-keep27]
}

// likely is the chance of being needed within a boot and a minute at which a GPU is worth its idling, times the worth
// of waiting: for boots of five minutes.
const likely = 1.2

// sigmas are the standard deviations of a normal distribution beyond which one more GPU is not worth its idling.
func (s *Shadows) sigmas() float64 {
	return math.Sqrt2 * math.Erfinv(1-2*min(0.5, likely/max(s.experts.worth, likely)))
}

// expertCurves is what levels are worth to the experts that decide by an Outlook.
type expertCurves struct {
	keep, boot           [len(ownTimes)]worthCurve
	keepAbove, bootAbove int // up to which level the hazard's chance is worth keeping, and booting
}

func (o *Outlook) curvesOf(p Prices) (c expertCurves) {
	p = p.byClock(o.clockRate())
	theta := (p.Boot + 60) / (max(p.WaitWorth, 1e-9) * p.Boot)
	c.keepAbove, c.bootAbove = o.hazardLevels(theta), o.hazardLevels(2*theta)
	x := o.prospectsAt(p)
	for i, times := range ownTimes {
		c.keep[i], c.boot[i] = x.worthByLevel(p.WaitWorth * times)
	}
	return c
}

// wantedByClock is what the timetable wants.
func (s *Shadows) wantedByClock(most int) int {
	x, past := s.experts, &s.tenant.past
	return min(most, past.Table.wanted(past.Last, Prices{WaitWorth: x.worth, Boot: x.boot, Late: x.late}))
}

// wanted is what the forecasters want that hold so many.
func (c *expertCurves) wanted(held, most int) (n [forecasters]int) {
	for i := range ownTimes {
		n[i] = bestLevel(held, most, &c.keep[i], &c.boot[i])
	}
	n[threshold] = c.byHazard(held, most)
	return n
}

// byHazard is what the threshold wants: it boots at twice the chance at which it keeps.
func (c *expertCurves) byHazard(held, most int) int {
	return min(most, max(c.bootAbove, min(c.keepAbove, held)))
}

// ruleName says which rule an expert is.
func (s *Shadows) ruleName(expert int) string {
	switch expert {
	case own:
		return "the forecast"
	case ownHalf, ownDouble, ownFour:
		return fmt.Sprintf("the forecast with waiting worth %g times as much", ownTimes[expert])
	case threshold:
		return "a fixed chance"
	case larger:
		return "what holds more of the forecast and a fixed chance"
	case nothing:
		return "holding nothing"
	case byClock:
		return "what comes by the clock"
	case ownOrTable:
		return "what holds more of the forecast and what comes by the clock"
	case ewma30, ewma120:
		return fmt.Sprintf("a moving mean of %.0f min", meanLives[expert-ewma30]/60/float64(s.tenant.fleet.pace))
	default:
		return fmt.Sprintf("keep-alive of %.0f min", s.keepSeconds(expert)/60/float64(s.tenant.fleet.pace))
	}
}
