package forecast

import "math"

// The hazard is a second, simpler prediction over the same cross features: the expected jobs that are credited to a bin
// within a fixed window, by logistic regression without a prior. It learns faster and knows nothing at first. Its
// weights take the place that each slot of the table has to spare.
const (
	hazardWindow = 360 // seconds of the model's own clock
	hazardRate   = 0.005
	hazardOffset = -4      // what the log-odds begin with: rises are rare
	hazardOutput = outputs // its place in a slot
)

// hazardOdds are the log-odds at the places found last.
func (c *crossFeatures) hazardOdds() float32 {
	sum := float32(hazardOffset)
	for _, i := range c.at {
		sum += c.weights[i+hazardOutput]
	}
	return sum
}

// tellingHazard is the error of the hazard from which an example is sure to be learned from, and leastHazardOdd the
// least chance that it is.
const (
	tellingHazard  = 0.2
	leastHazardOdd = 0.25
)

// learnHazard takes what came of one bin into the hazard. As with the other outputs, examples that were predicted well
// are learned from by chance, and count for those that were passed over.
func (m *model) learnHazard(e *example, bin, tenant int) {
	wrong := logistic(e.odds[bin]) - e.credit[bin]
	odds := min(1, max(leastHazardOdd, wrong/tellingHazard, -wrong/tellingHazard))
	if odds < 1 && m.hazardDraw.nextFloat() > float64(odds) {
		return
	}
	m.crossFeatures.findFeatures(&e.look, bin, tenant)
	m.crossFeatures.learnHazard(e.credit[bin], odds)
}

// learnHazard takes a step of the cross-entropy at the places found, for an example that was drawn with some odds.
func (c *crossFeatures) learnHazard(credit, odds float32) {
	wrong := logistic(c.hazardOdds()) - credit
	square, step := wrong*wrong/odds, hazardRate*wrong/odds
	for _, i := range c.at {
		s := &c.squares[i+hazardOutput]
		*s += square
		c.weights[i+hazardOutput] -= step / float32(math.Sqrt(float64(*s+1e-3)))
	}
}

// hazardLevels is up to which level the hazard's chance is so large, with log-odds that are straight lines between
// bins.
func (o *Outlook) hazardLevels(chance float64) int {
	if chance >= 1 {
		return 0
	}
	want, n := float32(math.Log(chance/(1-chance))), 0
	for n < o.bins && o.hazard[n] >= want {
		n++
	}
	if n == 0 {
		return 0
	}
	if n == o.bins {
		return firstLevel[n-1]
	}
	share := (o.hazard[n-1] - want) / (o.hazard[n-1] - o.hazard[n])
	return firstLevel[n-1] + int(share*float32(firstLevel[n]-firstLevel[n-1]))
}
