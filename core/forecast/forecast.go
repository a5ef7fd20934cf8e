// Package forecast predicts how many GPUs will be requested, learns from what
// happened, and says how many are worth keeping warm.
//
// An OnlineModel covers the next minutes: how likely a tenant's demand is to
// rise to each level, and what is worth holding for it. A Series covers the
// hours of the week, for windows further ahead. Everything here is pure: the
// same calls give the same numbers, and none depends on anything later than its
// call.
package forecast

import (
	"math"
	"sort"
	"time"
)

// MaxLevels is the largest number of GPUs a Forecast can speak of. Whatever
// lies above counts as exactly this many.
const MaxLevels = 4096

// negligible is the probability below which a level is left out of a Forecast.
const negligible = 1e-6

// Forecast is the distribution of the GPUs that arrive in one window. The zero
// value says that none will. A Forecast is never changed once made, so copies
// may be shared.
type Forecast struct {
	tail []float64 // tail[k-1] = P(arrivals >= k): non-increasing, in (0,1]
}

// fromTail makes a Forecast of any level probabilities: it bounds them to [0,1],
// makes them non-increasing and drops what is negligible. It owns tail.
func fromTail(tail []float64) Forecast {
	above := 1.0
	for i, p := range tail {
		if !(p > negligible) || i == MaxLevels {
			return Forecast{tail: tail[:i:i]}
		}
		above = math.Min(above, p)
		tail[i] = above
	}
	return Forecast{tail: tail}
}

// AtLeast returns the probability that k or more GPUs arrive: 1 for k <= 0.
func (f Forecast) AtLeast(k int) float64 {
	switch {
	case k <= 0:
		return 1
	case k > len(f.tail):
		return 0
	default:
		return f.tail[k-1]
	}
}

// Any returns the probability that at least one GPU is asked for.
func (f Forecast) Any() float64 { return f.AtLeast(1) }

// Levels returns the largest number of GPUs that the forecast holds possible.
func (f Forecast) Levels() int { return len(f.tail) }

// Mean returns the expected number of GPUs.
func (f Forecast) Mean() float64 {
	sum := 0.0
	for _, p := range f.tail {
		sum += p
	}
	return sum
}

// Variance returns the variance of the number of GPUs.
func (f Forecast) Variance() float64 {
	mean, square := 0.0, 0.0
	for i, p := range f.tail {
		mean += p
		square += float64(2*i+1) * p
	}
	return math.Max(0, square-mean*mean)
}

// Quantile returns the smallest k with P(arrivals <= k) >= p. p at or below 0
// gives 0; p at or above 1, or not a number, gives Levels.
func (f Forecast) Quantile(p float64) int {
	if !(p < 1) {
		return len(f.tail)
	}
	return sort.Search(len(f.tail), func(i int) bool { return f.tail[i] <= 1-p })
}

// Summary returns the numbers of the forecast that are stored and scored.
func (f Forecast) Summary() Summary {
	return Summary{P10: f.Quantile(0.1), P50: f.Quantile(0.5), P90: f.Quantile(0.9), Any: f.Any(), Mean: f.Mean()}
}

// Summary is a forecast in five numbers, the form that is shown, stored and
// scored: three quantiles in GPUs, the probability that any arrive, and the
// expected number.
type Summary struct {
	P10  int     `json:"p10"`
	P50  int     `json:"p50"`
	P90  int     `json:"p90"`
	Any  float64 `json:"any"`
	Mean float64 `json:"mean"`
}

// Event returns the forecast of one possible event: with the probability given,
// between low and high GPUs arrive, mid being the middle; otherwise none do.
// Between low and mid, and between mid and high, half of the probability is
// spread evenly. Numbers out of order are put in order, and what is not finite
// counts as 0.
func Event(probability float64, low, mid, high int) Forecast {
	p := math.Max(0, math.Min(1, finiteOrZero(probability)))
	low, mid, high = clampLevel(low), clampLevel(mid), clampLevel(high)
	mid = max(mid, low)
	high = max(high, mid)
	tail := make([]float64, high)
	for k := 1; k <= high; k++ {
		tail[k-1] = p * (uniformTail(k, low, mid) + uniformTail(k, mid, high)) / 2
	}
	return fromTail(tail)
}

// uniformTail is P(X >= k) for X spread evenly over the whole numbers from low to high.
func uniformTail(k, low, high int) float64 {
	switch {
	case k <= low:
		return 1
	case k > high:
		return 0
	default:
		return float64(high-k+1) / float64(high-low+1)
	}
}

func clampLevel(k int) int { return min(max(k, 0), MaxLevels) }

func finiteOrZero(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// countWindows counts how many spans of width w fit d, as a fraction.
func countWindows(d, w time.Duration) float64 { return float64(d) / float64(w) }
