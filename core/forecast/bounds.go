package forecast

import "math"

// Bounds limits what a model may claim. The model is not trusted: whatever it
// answers, the clamped forecast stays within what the caps allow and what the
// tenant's own past supports.
type Bounds struct {
	Max    int     // never more GPUs than this: the caps
	Floor  int     // always allowed, even if the baseline expects nothing: what the tenant has run before
	Factor float64 // more than Floor only up to this many times the baseline's 99 % quantile
}

// Limit returns the largest number of GPUs the bounds allow beside baseline.
func (b Bounds) Limit(baseline Forecast) int {
	supported := float64(b.Floor)
	if b.Factor > 0 {
		supported = math.Max(supported, math.Ceil(b.Factor*float64(baseline.Quantile(0.99))))
	}
	return clampLevel(int(math.Min(float64(b.Max), math.Min(supported, MaxLevels))))
}

// Clamp cuts model down to Limit: arrivals above count as exactly the limit.
// The result is ordered, finite and within [0, Max].
func (b Bounds) Clamp(model, baseline Forecast) Forecast {
	return model.AtMost(b.Limit(baseline))
}

// AtMost returns the forecast in which more than limit GPUs count as limit.
func (f Forecast) AtMost(limit int) Forecast {
	n := min(len(f.tail), clampLevel(limit))
	return Forecast{tail: f.tail[:n:n]}
}

// Blend returns the mixture that follows model with the probability weight, and
// baseline otherwise. A weight outside [0,1] is brought inside; one that is not
// a number counts as 0.
func Blend(baseline, model Forecast, weight float64) Forecast {
	w := math.Max(0, math.Min(1, finiteOrZero(weight)))
	return combineForecasts(baseline, model, func(a, b float64) float64 { return (1-w)*a + w*b })
}

// Highest returns, level by level, the larger probability of the two. It joins
// pieces of evidence that may speak of the same event, so that saying a thing
// twice does not make it likelier.
func Highest(a, b Forecast) Forecast { return combineForecasts(a, b, math.Max) }

func combineForecasts(a, b Forecast, f func(a, b float64) float64) Forecast {
	tail := make([]float64, max(len(a.tail), len(b.tail)))
	for i := range tail {
		tail[i] = f(a.AtLeast(i+1), b.AtLeast(i+1))
	}
	return fromTail(tail)
}
