package runtimes

import (
	"math"
	"slices"
	"time"
)

// unknown is a length beyond every limit: that of a run whose time was over.
const unknown = time.Duration(math.MaxInt64)

// Of fewer runs than enough no rank stands at a tenth from either end.
const (
	enough       = 9
	mostWidening = 4.0 // of the upper quantile
	leastSpread  = 0.1 // of logarithms of lengths: no two runs take exactly as long
)

// studentT is the 90th percentile of Student's distribution, by degrees of freedom from 1.
var studentT = [...]float64{3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415}

// quantilesOf returns the quantiles of the next run after these, which come the newest first. The upper one is
// split conformal prediction's: among n alike runs the next one has a rank of at most r with a chance of
// r/(n+1). Runs that change as time goes are not alike: it is widened by how far earlier ones were exceeded.
func quantilesOf(runs []Run) Prediction {
	lengths := make([]time.Duration, len(runs))
	for i, r := range runs {
		if lengths[len(runs)-1-i] = r.Length; r.Cut {
			lengths[len(runs)-1-i] = unknown
		}
	}
	sorted := slices.Sorted(slices.Values(lengths))
	p := Prediction{P10: lower(sorted), P50: median(sorted), P90: upper(sorted)}
	p.P90 = seconds(p.P90.Seconds() * widening(lengths))
	return p
}

func median(sorted []time.Duration) time.Duration {
	n := len(sorted)
	if low, high := sorted[(n-1)/2], sorted[n/2]; high < unknown {
		return low + (high-low)/2
	}
	return sorted[n/2]
}

func upper(sorted []time.Duration) time.Duration {
	n := len(sorted)
	if n < enough {
		_, high := spread(sorted)
		return max(sorted[n-1], high)
	}
	return sorted[int(math.Ceil(0.9*float64(n+1)))-1]
}

func lower(sorted []time.Duration) time.Duration {
	n := len(sorted)
	if n < enough {
		low, _ := spread(sorted)
		return min(sorted[0], low)
	}
	return sorted[int(0.1*float64(n+1))-1]
}

// spread is from where to where the next of few runs ends, were the logarithms of their lengths normal.
func spread(sorted []time.Duration) (low, high time.Duration) {
	var logs []float64
	sum := 0.0
	for _, d := range sorted {
		if d < unknown {
			logs = append(logs, math.Log(max(d.Seconds(), 1)))
			sum += logs[len(logs)-1]
		}
	}
	if len(logs) < 2 {
		return sorted[0], unknown
	}
	n, squares := float64(len(logs)), 0.0
	mean := sum / n
	for _, x := range logs {
		squares += (x - mean) * (x - mean)
	}
	reach := studentT[len(logs)-2] * max(math.Sqrt(squares/(n-1)), leastSpread) * math.Sqrt(1+1/n)
	return seconds(math.Exp(mean - reach)), seconds(math.Exp(mean + reach))
}

// widening is by how much the upper quantile is to be larger, so that it would have covered nine of ten of the
// runs, each predicted from those before it. They come the oldest first.
func widening(lengths []time.Duration) float64 {
	var ratios []float64
	before := slices.Sorted(slices.Values(lengths[:min(enough, len(lengths))]))
	for _, d := range lengths[len(before):] {
		said := upper(before)
		ratios = append(ratios, min(d.Seconds()/max(said.Seconds(), 1), mostWidening))
		at, _ := slices.BinarySearch(before, d)
		before = slices.Insert(before, at, d)
	}
	if len(ratios) < enough {
		return 1
	}
	slices.Sort(ratios)
	return max(1, ratios[int(math.Ceil(0.9*float64(len(ratios)+1)))-1])
}

// seconds is a length, at most unknown.
func seconds(x float64) time.Duration {
	if x >= unknown.Seconds() {
		return unknown
	}
	return time.Duration(math.Round(x * float64(time.Second)))
}
