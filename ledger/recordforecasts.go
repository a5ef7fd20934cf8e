package ledger

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// ForecastField names a field of the i-th forecast of a batch.
func ForecastField(i int, name string) string { return fmt.Sprintf("forecasts[%d].%s", i, name) }

// CheckTimely refuses a forecast that comes too late to be one. Whoever knows the
// window already would always look right.
func (f Forecast) CheckTimely(now time.Time, i int) error {
	switch {
	case f.Start.Before(now.Add(-lateForecast)):
		return &InvalidError{Field: ForecastField(i, "start"),
			Rule: "must not have passed: a forecast is sent before its window begins"}
	case f.IssuedAt.After(now.Add(clockSkew)):
		return &InvalidError{Field: ForecastField(i, "issued_at"), Rule: "must not be in the future"}
	}
	return nil
}

// BrokenRule names a field and the rule that it breaks; empty: none does.
func (f Forecast) BrokenRule() (field, rule string) {
	s := f.Said
	switch {
	case !f.Start.Before(f.End):
		return "end", "must be after start"
	case f.End.Sub(f.Start) > maxForecast:
		return "end", "must be at most 31 days after start"
	case f.IssuedAt.IsZero() || f.IssuedAt.After(f.Start):
		return "issued_at", "must not be after start"
	case s.P10 < 0 || s.P10 > s.P50 || s.P50 > s.P90 || s.P90 > maxExpected:
		return "gpus", fmt.Sprintf("must have 0 <= p10 <= p50 <= p90 <= %d", maxExpected)
	case !(s.Mean >= 0 && s.Mean <= maxExpected):
		return "gpus.mean", fmt.Sprintf("must be between 0 and %d", maxExpected)
	case !isFraction(s.Any):
		return "probability", "must be between 0 and 1"
	case f.Baseline.known && !isFraction(f.Baseline.value):
		return "baseline_probability", "must be between 0 and 1"
	case f.Influence.known && !isFraction(f.Influence.value):
		return "influence", "must be between 0 and 1"
	case !slices.Contains(ForecastSources, f.Source):
		return "source", "must be one of the sources"
	}
	return "", ""
}

func isFraction(x float64) bool { return x >= 0 && x <= 1 && !math.IsNaN(x) }
