package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// RecordForecasts adds forecasts, all or none, and returns how many were new. One
// that was recorded before with the same content is not added again; with other
// content it is a *BatchError.
func (l Forecasting) RecordForecasts(ctx context.Context, actor Actor, list []Forecast) (int, error) {
	owner, err := actor.bookingOrganization()
	if err != nil {
		return 0, err
	}
	if err := checkForecasts(list); err != nil {
		return 0, err
	}
	added := 0
	err = runMeasuring(ctx, l.engine, func(tx Tx) error {
		fresh, err := newForecasts(tx, owner, list)
		added = len(fresh)
		if err != nil || added == 0 {
			return err
		}
		for i := range fresh {
			fresh[i].MadeBy, fresh[i].RecordedAt = actor.KeyID, tx.Now()
		}
		if err := checkDailyForecasts(l.engine, tx, actor, added); err != nil {
			return err
		}
		return tx.Save(Change{Forecasts: fresh})
	})
	return added, err
}

// runMeasuring runs a verb that locks nothing outside the group commit, so that whoever books
// waits for it only where the database has one writer. It runs again when another
// wrote the same rows meanwhile.
func runMeasuring(ctx context.Context, l *engine, fn func(tx Tx) error) error {
	var err error
	for range 3 {
		err = l.store.InTx(ctx, func(tx Tx) error { return fn(tx) })
		if !errors.Is(err, ErrTaken) && !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return err
}

// newForecasts are those that are not recorded yet, once each.
func newForecasts(tx Tx, owner string, list []Forecast) ([]Forecast, error) {
	known, err := forecastsByID(tx, owner, list, func(f Forecast) string { return f.ID })
	if err != nil {
		return nil, err
	}
	var fresh []Forecast
	var different []int
	pools := map[string]bool{}
	for i, f := range list {
		f.OrganizationID = owner
		before, ok := known[f.ID]
		switch {
		case ok && before.asStated() != f.asStated():
			different = append(different, i)
		case ok:
		default:
			if err := f.checkTimely(tx.Now(), i); err != nil {
				return nil, err
			}
			if err := findPool(tx, f.PoolID, pools, i); err != nil {
				return nil, err
			}
			known[f.ID], fresh = f, append(fresh, f)
		}
	}
	if len(different) > 0 {
		return nil, &BatchError{Field: "forecasts", Items: different, Err: ErrDiffers}
	}
	return fresh, nil
}

// forecastsByID reads the organization's forecasts that items name.
func forecastsByID[T any](tx Tx, owner string, items []T, id func(T) string) (map[string]Forecast, error) {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = id(item)
	}
	slices.Sort(names)
	found, err := tx.Forecasts(Scope{OrganizationID: owner}, ForecastFilter{IDs: slices.Compact(names)}, 0)
	known := make(map[string]Forecast, len(found))
	for _, f := range found {
		known[f.ID] = f
	}
	return known, err
}

// findPool refuses a pool that there is not.
func findPool(tx Tx, id string, known map[string]bool, i int) error {
	if known[id] {
		return nil
	}
	p, err := LivePool(tx, id)
	if errors.Is(err, ErrNotFound) || err == nil && p.ID != id {
		return &InvalidError{Field: forecastField(i, "pool_id"), Rule: "must be the id of a pool"}
	}
	known[id] = true
	return err
}

// checkDailyForecasts bounds what one key adds in a day.
func checkDailyForecasts(l *engine, tx Tx, actor Actor, n int) error {
	today := tx.Now().UTC().Truncate(24 * time.Hour)
	before, err := tx.ForecastCount(actor.KeyID, today)
	if err == nil && before+n > l.cfg.ForecastsPerDay {
		return &TooManyError{Limit: l.cfg.ForecastsPerDay, After: today.Add(24 * time.Hour).Sub(tx.Now())}
	}
	return err
}

func forecastField(i int, name string) string { return fmt.Sprintf("forecasts[%d].%s", i, name) }

// checkTimely refuses a forecast that comes too late to be one. Whoever knows the
// window already would always look right.
func (f Forecast) checkTimely(now time.Time, i int) error {
	switch {
	case f.Start.Before(now.Add(-lateForecast)):
		return &InvalidError{Field: forecastField(i, "start"),
			Rule: "must not have passed: a forecast is sent before its window begins"}
	case f.IssuedAt.After(now.Add(clockSkew)):
		return &InvalidError{Field: forecastField(i, "issued_at"), Rule: "must not be in the future"}
	}
	return nil
}

// checkForecasts says what can never be right in a batch.
func checkForecasts(list []Forecast) error {
	if len(list) == 0 || len(list) > MaxForecasts {
		return &InvalidError{Field: "forecasts", Rule: fmt.Sprintf("must hold 1 to %d", MaxForecasts)}
	}
	for i, f := range list {
		if name, rule := f.brokenRule(); name != "" {
			return &InvalidError{Field: forecastField(i, name), Rule: rule}
		}
	}
	return nil
}

// brokenRule names a field and the rule that it breaks; empty: none does.
func (f Forecast) brokenRule() (field, rule string) {
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
