package forecast

import "math"

// NegativeBinomial returns the forecast with the mean and variance given. Counts
// that scatter no more than by chance (variance <= mean) are Poisson. A mean or
// variance that is negative or not a number counts as 0; an infinite mean fills
// every level.
func NegativeBinomial(mean, variance float64) Forecast {
	if !(mean > 0) {
		return Forecast{}
	}
	mean = math.Min(mean, 4*MaxLevels)
	if math.IsNaN(variance) {
		variance = 0
	}
	variance = math.Min(variance, mean*mean*1e6)
	start := logZero(mean, variance)
	if start < underflow {
		return normalForecast(mean, math.Max(mean, variance))
	}
	return sumByRecurrence(mean, variance, math.Exp(start))
}

// underflow is the logarithm below which the probability of zero is too small
// for the recurrence to start from.
const underflow = -600

// isDispersed reports whether the variance exceeds the mean by enough for a
// negative binomial; its size parameter mean²/(variance-mean) is finite then.
func isDispersed(mean, variance float64) bool { return variance > mean*(1+1e-9) }

// logZero is the logarithm of P(X = 0).
func logZero(mean, variance float64) float64 {
	if !isDispersed(mean, variance) {
		return -mean
	}
	size := mean * mean / (variance - mean)
	return -size * math.Log1p((variance-mean)/mean)
}

// sumByRecurrence sums the probability mass from its value at 0 upwards, by the
// recurrence P(k+1) = P(k)·(k+size)/(k+1)·(variance-mean)/variance, which for
// Poisson is P(k)·mean/(k+1).
func sumByRecurrence(mean, variance, mass float64) Forecast {
	var tail []float64
	overflow := isDispersed(mean, variance)
	size, ratio := 0.0, 0.0
	if overflow {
		size, ratio = mean*mean/(variance-mean), (variance-mean)/variance
	}
	rest := 1 - mass
	for k := 0.0; len(tail) < MaxLevels && rest > negligible; k++ {
		tail = append(tail, rest)
		if overflow {
			mass *= (k + size) / (k + 1) * ratio
		} else {
			mass *= mean / (k + 1)
		}
		rest -= mass
	}
	return fromTail(tail)
}

// normalForecast is the forecast by the normal curve with a half-step correction, for
// means so large that the recurrence cannot start.
func normalForecast(mean, variance float64) Forecast {
	tail := make([]float64, MaxLevels)
	scale := math.Sqrt(2 * variance)
	for i := range tail {
		tail[i] = math.Erfc((float64(i)+0.5-mean)/scale) / 2
	}
	return fromTail(tail)
}
