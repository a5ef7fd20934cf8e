package learned

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// samples is how many boots a pool remembers: enough for a 95th percentile, few
// enough that a change of the provider's speed shows within days.
const samples = 64

// priorWeight is how many real boots the prior counts for while none was seen.
// It fades with each boot and is gone when samples boots were seen.
const priorWeight = 4

// forgetting is how much less a boot counts than the one after it.
const forgetting = 0.98

// BootTimes is what a pool has learned about the time from asking for a node
// until it was proved ready. The zero value knows only its prior, which is zero.
type BootTimes struct {
	Prior50, Prior95 time.Duration
	Seen             []time.Duration // the newest last; those before a change of the source are forgotten
	Faded            int             // boots by which the prior has faded; at least len(Seen) counts
}

// Learn returns the times after one more boot. Where the newest boots no longer
// come from the source of the older ones, the older ones and the prior are
// forgotten.
func (b BootTimes) Learn(d time.Duration) BootTimes {
	seen := append(slices.Clone(b.Seen), d)
	b.Seen, b.Faded = seen[max(0, len(seen)-samples):], min(samples, max(b.Faded, len(b.Seen))+1)
	if at := findChange(b.Seen); at > 0 {
		b.Seen, b.Faded = b.Seen[at:], samples
	}
	return b
}

// P50 returns the median.
func (b BootTimes) P50() time.Duration { return b.Quantile(0.50) }

// P95 returns the 95th percentile: the lead time of a promise.
func (b BootTimes) P95() time.Duration { return b.Quantile(0.95) }

// Quantile returns the time in which the next boot ends with probability q,
// which lies between 0 and 1.
//
// The quantile of what was seen is the one of conformal prediction with
// geometrically fading weights, which covers a drifting source (Barber, Candès,
// Ramdas and Tibshirani, "Conformal prediction beyond exchangeability", Annals
// of Statistics 51, 2023), interpolated between ranks: the boot to come takes a
// weight of one itself, so that the r-th of n equal weights stands at r/(n+1).
// While few boots were seen it is drawn towards the prior's.
func (b BootTimes) Quantile(q float64) time.Duration {
	return b.weightedQuantile(b.weightedBoots(), q)
}

func (b BootTimes) weightedQuantile(w []weightedValue, q float64) time.Duration {
	prior := b.priorQuantile(q)
	if len(w) == 0 {
		return prior
	}
	seen, mass := interpolateQuantile(w, q)
	faded := max(b.Faded, len(b.Seen))
	weight := priorWeight * float64(max(0, samples-faded)) / samples
	share := weight / (weight + mass)
	return time.Duration(math.Round(seen + (float64(prior)-seen)*share))
}

// priorQuantile returns the quantile of the log-normal distribution through the prior's
// two points.
func (b BootTimes) priorQuantile(q float64) time.Duration {
	if b.Prior50 <= 0 || b.Prior95 <= b.Prior50 || q == 0.5 {
		return b.Prior50
	}
	if q == 0.95 {
		return b.Prior95
	}
	sigma := math.Log(float64(b.Prior95)/float64(b.Prior50)) / normalQuantile(0.95)
	return time.Duration(math.Round(float64(b.Prior50) * math.Exp(sigma*normalQuantile(q))))
}

// normalQuantile is the quantile function of the standard normal distribution.
func normalQuantile(q float64) float64 { return math.Sqrt2 * math.Erfinv(2*q-1) }

// weightedValue is something that was seen, and how much it counts.
type weightedValue struct{ value, weight float64 }

// weightedBoots returns what was seen, the smallest first.
func (b BootTimes) weightedBoots() []weightedValue { return weightByAge(b.Seen) }

func weightByAge(seen []time.Duration) []weightedValue {
	w := make([]weightedValue, len(seen))
	weight := 1.0
	for i := len(seen) - 1; i >= 0; i-- {
		w[i] = weightedValue{float64(seen[i]), weight}
		weight *= forgetting
	}
	slices.SortFunc(w,
		func(a, b weightedValue) int {
			return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.weight, b.weight))
		})
	return w
}

// interpolateQuantile returns the weighted quantile of what was seen, which must be
// sorted and not empty, and the sum of the weights.
func interpolateQuantile(w []weightedValue, q float64) (value, mass float64) {
	for _, s := range w {
		mass += s.weight
	}
	below, value := 0.0, w[0].value
	for _, s := range w {
		upTo := below + s.weight/(mass+1)
		if upTo >= q {
			if below > 0 {
				value += (s.value - value) * (q - below) / (upTo - below)
			}
			return value, mass
		}
		below, value = upTo, s.value
	}
	return value, mass
}
