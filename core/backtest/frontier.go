package backtest

import (
	"cmp"
	"slices"
)

// Point is what one run of a policy came to.
type Point struct {
	Overhead float64 // idle and booting GPU-hours in percent of busy ones
	Mean     float64 // mean wait in seconds
	ZeroWait float64 // jobs that did not wait, in percent
}

// Point returns the outcome as a point of a frontier.
func (o Outcome) Point() Point { return Point{o.Overhead(), o.Mean, o.ZeroWaitShare()} }

// Frontier is what a family of policies can reach: points of growing overhead
// and falling wait.
type Frontier []Point

// NewFrontier keeps of the points those that no other one beats: it drops a point
// with a larger overhead and no smaller wait.
func NewFrontier(points []Point) Frontier {
	all := slices.Clone(points)
	slices.SortFunc(all, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Overhead, b.Overhead), cmp.Compare(a.Mean, b.Mean))
	})
	var f Frontier
	for _, p := range all {
		if len(f) == 0 || p.Mean < f[len(f)-1].Mean {
			f = append(f, p)
		}
	}
	return f
}

// At returns what the family reaches at an overhead, in percent, on the straight
// line between the runs beside it. More than the last run needs buys nothing
// more. It reports false for less than the first run needs.
func (f Frontier) At(overhead float64) (Point, bool) {
	i, exact := slices.BinarySearchFunc(f, overhead, func(p Point, x float64) int { return cmp.Compare(p.Overhead, x) })
	switch {
	case exact:
		return f[i], true
	case i == 0:
		return Point{Overhead: overhead}, false
	case i == len(f):
		return Point{overhead, f[i-1].Mean, f[i-1].ZeroWait}, true
	}
	a, b := f[i-1], f[i]
	share := (overhead - a.Overhead) / (b.Overhead - a.Overhead)
	return Point{overhead, a.Mean + share*(b.Mean-a.Mean), a.ZeroWait + share*(b.ZeroWait-a.ZeroWait)}, true
}
