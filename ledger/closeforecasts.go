package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/forecast"
)

// ForecastClosing says how a forecast came out.
type ForecastClosing struct {
	ID        string
	GPUs      int // that arrived in its window
	CountedAt time.Time
}

// CloseForecasts scores forecasts whose windows are over, all or none, and returns
// how many it closed. One that was closed before with the same number is left as
// it is; with another number it is a *BatchError, as are one that is not over and
// one that there is not. An agent closes its own, people below
// admins what their keys made.
func (l Forecasting) CloseForecasts(ctx context.Context, actor Actor, list []ForecastClosing) (int, error) {
	owner, err := actor.bookingOrganization()
	if err != nil {
		return 0, err
	}
	if err := checkClosings(list); err != nil {
		return 0, err
	}
	n := 0
	err = runMeasuring(ctx, l.engine, func(tx Tx) error {
		closed, err := closedForecasts(tx, actor, owner, list)
		if n = len(closed); err != nil || n == 0 {
			return err
		}
		return tx.Save(Change{ClosedForecasts: closed})
	})
	return n, err
}

func checkClosings(list []ForecastClosing) error {
	if len(list) == 0 || len(list) > MaxForecasts {
		return &InvalidError{Field: "outcomes", Rule: fmt.Sprintf("must hold 1 to %d", MaxForecasts)}
	}
	for i, c := range list {
		if c.GPUs < 0 || c.GPUs > MaxGPUs { // more than any request may name
			return &InvalidError{Field: fmt.Sprintf("outcomes[%d].gpus", i),
				Rule: fmt.Sprintf("must be between 0 and %d", MaxGPUs)}
		}
	}
	return nil
}

// itemErrors collects the items of a batch that cannot be taken, by reason.
type itemErrors struct{ missing, different, early []int }

// firstError is the first reason's error, or nil.
func (r itemErrors) firstError() error {
	for _, group := range []struct {
		items []int
		err   error
	}{{r.missing, ErrNotFound}, {r.different, ErrDiffers}, {r.early, ErrNotOver}} {
		if len(group.items) > 0 {
			return &BatchError{Field: "outcomes", Items: group.items, Err: group.err}
		}
	}
	return nil
}

// closedForecasts are the forecasts that a batch closes, scored.
func closedForecasts(tx Tx, actor Actor, owner string, list []ForecastClosing) ([]Forecast, error) {
	known, err := forecastsByID(tx, owner, list, func(c ForecastClosing) string { return c.ID })
	if err != nil {
		return nil, err
	}
	own := mayClose(tx, actor)
	var closed []Forecast
	var refused itemErrors
	for i, c := range list {
		f, ok := known[c.ID]
		switch {
		case !ok || !own(f):
			refused.missing = append(refused.missing, i)
		case f.Closed() && f.Outcome.GPUs != c.GPUs:
			refused.different = append(refused.different, i)
		case f.Closed():
		case tx.Now().Before(f.End):
			refused.early = append(refused.early, i)
		default:
			if err := c.checkTimely(f, tx.Now(), i); err != nil {
				return nil, err
			}
			f.Outcome = c.outcomeOf(f, tx.Now())
			known[c.ID], closed = f, append(closed, f)
		}
	}
	// In one order everywhere, so that two senders of the same do not wait for each
	// other in a circle.
	slices.SortFunc(closed, func(a, b Forecast) int { return cmp.Compare(a.Seq, b.Seq) })
	return closed, refused.firstError()
}

// mayClose tells of which forecasts an actor may say how they came out: an agent of
// its own, admins of all, and other people of those that a key of theirs made, be
// it an agent's.
func mayClose(tx Tx, actor Actor) func(Forecast) bool {
	if actor.Kind != AgentKey && actor.AtLeast(Admin) {
		return func(Forecast) bool { return true }
	}
	theirs := map[string]bool{actor.KeyID: true}
	return func(f Forecast) bool {
		mine, known := theirs[f.MadeBy]
		if !known && actor.Kind != AgentKey {
			k, err := tx.Key(actor.Scope(), f.MadeBy)
			mine = err == nil && (k.ParentID == actor.KeyID || actor.UserID != "" && k.UserID == actor.UserID)
		}
		theirs[f.MadeBy] = mine
		return mine
	}
}

// checkTimely refuses a count that was made before the window was over, or later than
// now.
func (c ForecastClosing) checkTimely(f Forecast, now time.Time, i int) error {
	if c.CountedAt.Before(f.End) || c.CountedAt.After(now.Add(clockSkew)) {
		return &InvalidError{Field: fmt.Sprintf("outcomes[%d].counted_at", i),
			Rule: "must be between the end of the window and now"}
	}
	return nil
}

// outcomeOf scores a forecast.
func (c ForecastClosing) outcomeOf(f Forecast, now time.Time) ForecastOutcome {
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
