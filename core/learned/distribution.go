package learned

import (
	"math"
	"sort"
	"time"
)

// quantileSteps is in how many steps a curve goes from 0 to 1.
const quantileSteps = 100

// Distribution is a distribution as its quantiles at 1/grid, 2/grid, ...; between them
// it is linear, beyond the last an exponential tail.
type Distribution struct {
	at   [quantileSteps - 1]float64
	tail float64 // the mean of what lies beyond the last
}

// Distribution returns the boot times' distribution.
func (b BootTimes) Distribution() *Distribution {
	w := b.weightedBoots()
	return newDistribution(func(q float64) float64 { return float64(b.weightedQuantile(w, q)) })
}

func newDistribution(quantile func(q float64) float64) *Distribution {
	c := &Distribution{}
	for i := range c.at {
		c.at[i] = quantile(float64(i+1) / quantileSteps)
	}
	median, last := c.at[quantileSteps/2-1], c.at[quantileSteps-2]
	// Past everything seen nothing is known: the longer boots take here, the
	// longer the rest of one that hangs is taken to be.
	c.tail = math.Max(last-median, median/4)
	return c
}

// Within returns the chance that a boot takes at most d.
func (b BootTimes) Within(d time.Duration) float64 { return b.Distribution().CDF(float64(d)) }

// CDF returns the chance of at most d, in nanoseconds.
func (c *Distribution) CDF(d float64) float64 {
	last := len(c.at) - 1
	switch i := sort.Search(len(c.at), func(i int) bool { return c.at[i] > d }); {
	case d < 0:
		return 0
	case i == 0:
		return d / c.at[0] / quantileSteps
	case i <= last:
		return (float64(i) + (d-c.at[i-1])/(c.at[i]-c.at[i-1])) / quantileSteps
	case c.tail == 0:
		return 1
	default:
		return 1 - math.Exp(-(d-c.at[last])/c.tail)/quantileSteps
	}
}

// quantile is the inverse of within, for u below 1.
func (c *Distribution) quantile(u float64) float64 {
	last := len(c.at) - 1
	i := int(u * quantileSteps) // u lies between i/grid and (i+1)/grid
	switch part := u*quantileSteps - float64(i); {
	case i == 0:
		return c.at[0] * part
	case i <= last:
		return c.at[i-1] + (c.at[i]-c.at[i-1])*part
	default:
		return c.at[last] - c.tail*math.Log((1-u)*quantileSteps)
	}
}

// Remaining returns the q-quantile of what is left of something that has lasted for
// age so far.
func (c *Distribution) Remaining(age time.Duration, q float64) time.Duration {
	past := math.Min(c.CDF(float64(age)), 1-1e-9)
	rest := c.quantile(past+q*(1-past)) - float64(age)
	if past == 1-1e-9 {
		rest = -c.tail * math.Log(1-q) // an exponential tail has no memory
	}
	return time.Duration(math.Max(0, math.Round(rest)))
}
