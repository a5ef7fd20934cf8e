package ledger

import (
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/forecast"
)

// ForecastClosing says how a forecast came out.
type ForecastClosing struct {
	ID        string
	GPUs      int // that arrived in its window
	CountedAt time.Time
}

// CheckTimely refuses a count that was made before the window was over, or later than
// now.
func (c ForecastClosing) CheckTimely(f Forecast, now time.Time, i int) error {
	if c.CountedAt.Before(f.End) || c.CountedAt.After(now.Add(clockSkew)) {
		return &InvalidError{Field: fmt.Sprintf("outcomes[%d].counted_at", i),
			Rule: "must be between the end of the window and now"}
	}
	return nil
}

// OutcomeOf scores a forecast.
func (c ForecastClosing) OutcomeOf(f Forecast, now time.Time) ForecastOutcome {
	o := ForecastOutcome{GPUs: c.GPUs, CountedAt: c.CountedAt, ClosedAt: now, Score: f.Said.Evaluate(c.GPUs)}
	if p, ok := f.Baseline.Value(); ok {
		o.BaselineBrier = FractionOf(forecast.Brier(p, c.GPUs > 0))
	}
	return o
}

// ForecastFilter narrows a list of forecasts. Zero fields do not narrow.
type ForecastFilter struct {
	Before   int64    // only rows with a smaller seq
	IDs      []string // only these; then the list has no other limit
	Source   ForecastSource
	PoolID   string
	MadeBy   string
	State    ForecastState
	From, To time.Time // only windows that start in [From, To)
}

// ForecastState says whether it is known how a forecast came out.
type ForecastState string

// The states.
const (
	ForecastOpen   ForecastState = "open"
	ForecastClosed ForecastState = "closed"
)

// ReliabilityBins is how many equal parts stated probabilities are sorted into.
const ReliabilityBins = 10

// Calibration is how the closed forecasts of one source came out.
type Calibration struct {
	Source ForecastSource
	N      int // forecasts, and of the means that follow
	// Pinball is in GPUs, the mean over the three quantiles. Inside is the share
	// of outcomes from P10 to P90.
	Pinball, Brier, LogLoss, Inside float64
	// Of the Compared forecasts that have a baseline: the mean Brier score of the
	// baseline, and of the source itself.
	Compared                   int
	BaselineBrier, BesideBrier float64
	Bins                       [ReliabilityBins]ReliabilityBin // by stated probability: [0, 0.1), and so on to [0.9, 1]
	Influence                  Fraction                        // of the latest of these forecasts
}

// ReliabilityBin is one part of a reliability diagram.
type ReliabilityBin struct {
	N    int
	Said float64 // mean of the stated probabilities
	Seen float64 // share that came true
}

// CalibrationFilter says which closed forecasts are looked at. An empty Source
// is all.
type CalibrationFilter struct {
	Source   ForecastSource
	From, To time.Time // windows that started in [From, To)
}
