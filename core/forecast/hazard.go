package forecast

import "math"

// The hazard is a second, simpler prediction over the same cross features: the expected jobs that are credited to a bin
// within a fixed window, by logistic regression without a prior. It learns faster and knows nothing at first, but that
// rises are rare. Its weights take the place that each slot of the table has to spare.
//
// That rises are rare is taken back by and by, so that it has to be learned of each feature. What was never seen, such
// as a level that demand has not reached before, then counts for more than what was seen and led to nothing: where work
// grows or changes, the hazard errs to the side of holding (optimism in the face of uncertainty: Lai and Robbins,
// "Asymptotically Efficient Adaptive Allocation Rules", 1985). Told at once instead of by and by, it holds hundreds of
// GPUs for nothing on the first day.
const (
	hazardWindow = 360 // seconds of the model's own clock
	hazardRate   = 0.005
	hazardOffset = -4      // what the log-odds begin with: rises are rare,
	hazardTrust  = 5000    // and after how many bins that were learned half of that is taken back
	hazardOutput = outputs // its place in a slot
)

// hazardBase is what the log-odds of everything begin with.
func (c *crossFeatures) hazardBase() float32 { return float32(hazardOffset * c.hazardPrior) }

// hazardForgets is the part of the beginning that is left after a bin was learned.
const hazardForgets = 1 - math.Ln2/hazardTrust

// hazardOdds are the log-odds at the places found last.
func (c *crossFeatures) hazardOdds() float32 {
	sum := c.hazardBase()
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

// drawHazard decides by chance whether the hazard is learned from one bin, and with which odds. As with the other
// outputs, examples that were predicted well count for those that were passed over.
func (m *model) drawHazard(e *example, bin int) (drawn bool, odds float32) {
	wrong := logistic(e.odds[bin]) - e.credit[bin]
	odds = min(1, max(leastHazardOdd, wrong/tellingHazard, -wrong/tellingHazard))
	return odds == 1 || m.hazardDraw.nextFloat() <= float64(odds), odds
}

// learnHazard takes a step of the cross-entropy at the places found, for an example that was drawn with some odds.
func (c *crossFeatures) learnHazard(credit, odds float32) {
	wrong := logistic(c.hazardOdds()) - credit
	c.hazardPrior *= hazardForgets
	square, step := wrong*wrong/odds, hazardRate*wrong/odds
	for _, i := range c.at {
		s := &c.squares[i+hazardOutput]
		*s += square
		c.weights[i+hazardOutput] -= step / float32(math.Sqrt(float64(*s+damping)))
	}
}

// hazardLevels is up to which level the hazard's chance is so large. From the first level of the last bin of which
// it is, log-odds are straight lines to that of the next one, as far as jobs' needs end at each level of the bin.
// The less they do, the more of the bin belongs to one job, and part of what a job needs is worth nothing.
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
	share := float32(1)
	if n < o.bins {
		share = (o.hazard[n-1] - want) / (o.hazard[n-1] - o.hazard[n])
	}
	share += (1 - share) * (1 - o.chances[n-1][landing])
	wide := binWidth[n-1]
	return firstLevel[n-1] + min(wide-1, int(share*float32(wide)+rounding))
}

// rounding is what a share of a bin's levels may lack by rounding.
const rounding = 1e-3
