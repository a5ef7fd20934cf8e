package plan

import (
	"math"
	"sort"
	"time"
)

// grid is in how many steps a curve goes from 0 to 1.
const grid = 100

// curve is a distribution as its quantiles at 1/grid, 2/grid, ...; between them
// it is linear, beyond the last an exponential tail.
type curve struct {
	at   [grid - 1]float64
	tail float64 // the mean of what lies beyond the last
}

// curve returns the boot times' distribution.
func (b BootTimes) curve() *curve {
	w := b.weighed()
	return curveOf(func(q float64) float64 { return float64(b.quantile(w, q)) })
}

func curveOf(quantile func(q float64) float64) *curve {
	c := &curve{}
	for i := range c.at {
		c.at[i] = quantile(float64(i+1) / grid)
	}
	median, last := c.at[grid/2-1], c.at[grid-2]
	// Past everything seen nothing is known: the longer boots take here, the
	// longer the rest of one that hangs is taken to be.
	c.tail = math.Max(last-median, median/4)
	return c
}

// Within returns the chance that a boot takes at most d.
func (b BootTimes) Within(d time.Duration) float64 { return b.curve().within(float64(d)) }

func (c *curve) within(d float64) float64 {
	last := len(c.at) - 1
	switch i := sort.Search(len(c.at), func(i int) bool { return c.at[i] > d }); {
	case d < 0:
		return 0
	case i == 0:
		return d / c.at[0] / grid
	case i <= last:
		return (float64(i) + (d-c.at[i-1])/(c.at[i]-c.at[i-1])) / grid
	case c.tail == 0:
		return 1
	default:
		return 1 - math.Exp(-(d-c.at[last])/c.tail)/grid
	}
}

// quantile is the inverse of within, for u below 1.
func (c *curve) quantile(u float64) float64 {
	last := len(c.at) - 1
	i := int(u * grid) // u lies between i/grid and (i+1)/grid
	switch part := u*grid - float64(i); {
	case i == 0:
		return c.at[0] * part
	case i <= last:
		return c.at[i-1] + (c.at[i]-c.at[i-1])*part
	default:
		return c.at[last] - c.tail*math.Log((1-u)*grid)
	}
}

// left returns the q-quantile of what is left of something that has lasted for
// age so far.
func (c *curve) left(age time.Duration, q float64) time.Duration {
	past := math.Min(c.within(float64(age)), 1-1e-9)
	rest := c.quantile(past+q*(1-past)) - float64(age)
	if past == 1-1e-9 {
		rest = -c.tail * math.Log(1-q) // an exponential tail has no memory
	}
	return time.Duration(math.Max(0, math.Round(rest)))
}
