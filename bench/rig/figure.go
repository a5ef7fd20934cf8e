package rig

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Series is one measure over the runs.
type Series []float64

// Median returns the middle value, or the mean of the two in the middle.
func (s Series) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Over divides run by run: what happened to the machine in one run happened to
// both.
func (s Series) Over(by Series) Series {
	out := make(Series, len(s))
	for i := range s {
		out[i] = s[i] / by[i]
	}
	return out
}

// Print writes the figure, which is the median, below the runs it comes from.
func (s Series) Print(out io.Writer, name, unit string) {
	runs := make([]string, len(s))
	for i, v := range s {
		runs[i] = formatValue(v)
	}
	fmt.Fprintf(out, "runs of %s: %s\n", name, strings.Join(runs, " "))
	fmt.Fprintf(out, "figure: %s %s %s\n", name, formatValue(s.Median()), unit)
}

func formatValue(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// Quantile returns the q-quantile of durations by nearest rank, in milliseconds.
func Quantile(d []time.Duration, q float64) float64 {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	rank := min(len(sorted)-1, int(q*float64(len(sorted))))
	return float64(sorted[rank]) / float64(time.Millisecond)
}
