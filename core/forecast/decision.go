package forecast

import (
	"fmt"
	"math"
	"sort"
	"time"
)

// Costs says what waiting and idling are worth.
type Costs struct {
	R       float64       // how many idle GPU-hours one hour of one waiting job is worth
	Boot    time.Duration // a job that finds no warm GPU waits this long
	Horizon time.Duration // a GPU kept for the forecast's window idles this long if nobody comes
	JobGPUs float64       // GPUs of a typical job; 0 means 1. A warm GPU saves this part of one job's wait
}

// Decision is a hold decision with the numbers it was made from: the same
// inputs give the same decision, and it can be printed.
type Decision struct {
	Levels    int     `json:"levels"`    // GPUs worth keeping warm
	Threshold float64 `json:"threshold"` // a level is kept if its probability reaches this; above 1, none is
	Kept      float64 `json:"kept"`      // probability of the last level kept; 1 if none is
	Refused   float64 `json:"refused"`   // probability of the first level not kept
}

// Threshold returns the probability from which keeping one GPU warm is worth
// its idling: Horizon·JobGPUs / (R·Boot). If waiting costs nothing it is +Inf.
func (c Costs) Threshold() float64 {
	size := math.Max(1, finite(c.JobGPUs))
	value := finite(c.R) * c.Boot.Hours()
	if !(value > 0) {
		return math.Inf(1)
	}
	return math.Max(0, c.Horizon.Hours()) * size / value
}

// Decide applies the expected-cost rule: level k is worth keeping warm if and
// only if P(arrivals >= k) · R · Boot / JobGPUs >= Horizon. Levels whose
// probability is negligible are never kept, even if idling were free.
func Decide(f Forecast, c Costs) Decision {
	threshold := c.Threshold()
	levels := sort.Search(len(f.tail), func(i int) bool { return f.tail[i] < threshold })
	return Decision{Levels: levels, Threshold: threshold, Kept: f.AtLeast(levels), Refused: f.AtLeast(levels + 1)}
}

// HoldLevels returns how many GPUs are worth keeping warm: Decide without the
// reasons.
func HoldLevels(f Forecast, c Costs) int { return Decide(f, c).Levels }

// Explain says in one line why.
func (d Decision) Explain() string {
	if d.Levels == 0 {
		return fmt.Sprintf("hold none: the first GPU is needed with probability %.2f, below the %.2f at which holding it pays", d.Refused, d.Threshold)
	}
	return fmt.Sprintf("hold %d: GPU %d is needed with probability %.2f, GPU %d with %.2f, and holding pays from %.2f",
		d.Levels, d.Levels, d.Kept, d.Levels+1, d.Refused, d.Threshold)
}
