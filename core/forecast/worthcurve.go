package forecast

import "math"

// worthCurve is, bin by bin, what one GPU more saves and costs.
type worthCurve struct {
	bins            int
	saving, holding [bins]float64
}

// worthByLevel weighs bins up to the first that cannot pay: those above are less likely
// to be needed, so they pay even less.
func (x *prospects) worthByLevel(wait float64) (keep, boot worthCurve) {
	keep.fill(x.bins, func(b int) worthOfGPU { return x.worthOfKeeping(wait, b) })
	boot.fill(x.bins, func(b int) worthOfGPU { return x.worthOfBooting(wait, b) })
	return keep, boot
}

func (c *worthCurve) fill(most int, weigh func(b int) worthOfGPU) {
	for c.bins < most {
		w := weigh(c.bins)
		c.saving[c.bins], c.holding[c.bins] = w.saving, w.holding
		c.bins++
		if w.hopeless {
			return
		}
	}
}

// top is the last level of the curve, 0 if it has none.
func (c *worthCurve) top() int {
	if c.bins == 0 {
		return 0
	}
	return firstLevel[c.bins-1] + binWidth[c.bins-1] - 1
}

// slope is by how much each level of a bin costs more than the one before: costs are drawn between a bin's and the next
// one's.
func (c *worthCurve) slope(b int) float64 {
	if b+1 == c.bins {
		return 0
	}
	return (c.holding[b+1] - c.holding[b]) / float64(binWidth[b])
}

// sumsUpTo adds up what the levels from 1 to level save and cost.
func (c *worthCurve) sumsUpTo(level int) (saving, holding float64) {
	for b := 0; b < c.bins && firstLevel[b] <= level; b++ {
		n := float64(min(binWidth[b], level-firstLevel[b]+1))
		saving += n * c.saving[b]
		holding += n*c.holding[b] + c.slope(b)*n*(n-1)/2
	}
	return saving, holding
}

// bestLevel returns the level up to which what is saved exceeds what it costs by most,
// the lowest of equals: levels that are held are kept, and those above are booted.
// A part of a gang that is held, and of which the rest is not worth a boot, so
// goes, and one that a boot completes stays.
func bestLevel(held, limit int, keep, boot *worthCurve) int {
	var s summit
	s.climb(keep, 0, min(held, limit))
	if held <= keep.top() { // above what cannot pay, less can
		s.climb(boot, held, limit)
	}
	return s.level
}

// summit is the level with the highest sum on the way up, and the sum that is reached.
type summit struct {
	sum, most float64
	level     int
}

// climb adds up the levels above one, up to another.
func (s *summit) climb(c *worthCurve, above, to int) {
	for b := 0; b < c.bins && firstLevel[b] <= to; b++ {
		from := max(0, above-firstLevel[b]+1)
		n := min(binWidth[b], to-firstLevel[b]+1)
		if from < n {
			s.climbBin(c, b, from, n)
		}
	}
}

// climbBin adds up a bin's levels from one place to before another. Where each costs more than the one before, the sum
// is highest where they cease to pay, and otherwise at an end.
func (s *summit) climbBin(c *worthCurve, b, from, to int) {
	gain, slope := c.saving[b]-c.holding[b], c.slope(b)
	sum := func(n int) float64 {
		return s.sum + float64(n-from)*gain - slope*float64(n*(n-1)-from*(from-1))/2
	}
	first := from + 1
	if slope > 0 && gain > 0 {
		first = max(first, int(min(float64(to), math.Ceil(gain/slope))))
	}
	for _, n := range [2]int{first, to} {
		if x := sum(n); x > s.most {
			s.most, s.level = x, firstLevel[b]+n-1
		}
	}
	s.sum = sum(to)
}
