package learned

import (
	"math"
	"slices"
	"time"
)

const (
	// fewest is how many samples each side of a change must have.
	fewest = 5
	// certainty is how many standard deviations the rank sum of the newer samples
	// must lie from that of one common source. Every split of the samples is
	// tried after every sample, so the bound is far out: a steady source trips it
	// about once in a thousand samples.
	certainty = 4
)

// findChange returns the index of the first sample after the source changed, or 0.
// It is the change-point model on the Mann-Whitney statistic: every split is
// tried, and the clearest one taken if it is clear enough (Hawkins and Deng, "A
// Nonparametric Change-Point Control Chart", Journal of Quality Technology 42,
// 2010). Ranks make it blind to single outliers however large.
func findChange(seen []time.Duration) int {
	ranks := midranks(seen)
	n, clearest, at := float64(len(seen)), float64(certainty), 0
	sum := 0.0
	for i, rank := range ranks {
		if before := float64(i); i >= fewest && len(seen)-i >= fewest {
			mean, deviation := before*(n+1)/2, math.Sqrt(before*(n-before)*(n+1)/12)
			if z := math.Abs(sum-mean) / deviation; z > clearest {
				clearest, at = z, i
			}
		}
		sum += rank
	}
	return at
}

// midranks returns each sample's rank; equal samples share the middle of theirs.
func midranks(seen []time.Duration) []float64 {
	sorted := slices.Sorted(slices.Values(seen))
	ranks := make([]float64, len(seen))
	for i, d := range seen {
		first, _ := slices.BinarySearch(sorted, d)
		after, _ := slices.BinarySearch(sorted, d+1)
		ranks[i] = float64(first+after+1) / 2
	}
	return ranks
}
