package runtimes

import (
	"math"
	"slices"
	"time"
)

// unknown is a length beyond every limit, and beyond all that is known.
const unknown = time.Duration(math.MaxInt64)

// Of fewer runs than enough no rank stands at a tenth from either end.
const (
	enough       = 9
	mostWidening = 4.0 // of the upper quantile
	leastSpread  = 0.1 // of logarithms of lengths: no two runs take exactly as long
)

// jitter is by how much runs of the same work differ, by how busy their node is when they start and end. Where ranks
// stand closer, they tell of the order in which these runs were measured, and nothing of the next one.
const jitter = time.Second

// studentT is the 90th percentile of Student's distribution, by degrees of freedom from 1.
var studentT = [...]float64{3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415}

// quantilesOf returns the quantiles of the next run after these, which come the newest first. The upper one is
// split conformal prediction's: among n alike runs the next one has a rank of at most r with a chance of
// r/(n+1). Runs that change as time goes are not alike: it is widened by how far earlier ones were exceeded.
func quantilesOf(runs []Run) Prediction {
	all := sampleOf(runs)
	n := len(runs)
	p := Prediction{P10: lower(all, n), P50: median(all, n), P90: upper(all, n)}
	p.P90 = seconds(p.P90.Seconds() * widening(runs))
	p.P10, p.P90 = max(0, min(p.P10, p.P50-jitter)), max(p.P90, min(p.P50, unknown-jitter)+jitter)
	return p
}

func median(all sample, n int) time.Duration {
	low, high := all.at((n-1)/2+1), all.at(n/2+1)
	if high < unknown {
		return low + (high-low)/2
	}
	return high
}

func upper(all sample, n int) time.Duration {
	if n < enough {
		_, high := spread(all)
		return max(all.at(n), high)
	}
	return all.at(int(math.Ceil(0.9 * float64(n+1))))
}

func lower(all sample, n int) time.Duration {
	if n < enough {
		low, _ := spread(all)
		return min(all.at(1), low)
	}
	return all.at(int(0.1 * float64(n+1)))
}

// spread is from where to where the next of few runs ends, were the logarithms of their lengths normal.
func spread(all sample) (low, high time.Duration) {
	var logs []float64
	sum := 0.0
	for _, x := range all {
		if x.length < unknown {
			logs = append(logs, math.Log(max(x.length.Seconds(), 1)))
			sum += logs[len(logs)-1]
		}
	}
	if len(logs) < 2 {
		return all.at(1), unknown
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
// runs, each predicted from those before it. They come the newest first. What was cut before it had run for as long as
// was said of it tells nothing.
func widening(runs []Run) float64 {
	var ratios []float64
	for i := len(runs) - 1 - enough; i >= 0; i-- {
		before := runs[i+1:]
		said := upper(sampleOf(before), len(before))
		if r := runs[i]; !r.Cut || r.Length > said {
			ratios = append(ratios, min(r.Length.Seconds()/max(said.Seconds(), 1), mostWidening))
		}
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
