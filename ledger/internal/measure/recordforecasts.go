package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// RecordForecasts adds forecasts, all or none, and returns how many were new. One
// that was recorded before with the same content is not added again; with other
// content it is a *BatchError.
func (l Forecasting) RecordForecasts(ctx context.Context, actor ledger.Actor, list []ledger.Forecast) (int, error) {
	owner, err := actor.BookingOrganization()
	if err != nil {
		return 0, err
	}
	if err := checkForecasts(list); err != nil {
		return 0, err
	}
	added := 0
	err = runMeasuring(ctx, l.Engine, func(tx ledger.Tx) error {
		fresh, err := newForecasts(tx, owner, list)
		added = len(fresh)
		if err != nil || added == 0 {
			return err
		}
		for i := range fresh {
			fresh[i].MadeBy, fresh[i].RecordedAt = actor.KeyID, tx.Now()
		}
		if err := checkDailyForecasts(l.Engine, tx, actor, added); err != nil {
			return err
		}
		return tx.Save(ledger.Change{Forecasts: fresh})
	})
	return added, err
}

// runMeasuring runs a verb that locks nothing outside the group commit, so that whoever books
// waits for it only where the database has one writer. It runs again when another
// wrote the same rows meanwhile.
func runMeasuring(ctx context.Context, l *txn.Engine, fn func(tx ledger.Tx) error) error {
	var err error
	for range 3 {
		err = l.Store.InTx(ctx, func(tx ledger.Tx) error { return fn(tx) })
		if !errors.Is(err, ledger.ErrTaken) && !errors.Is(err, ledger.ErrConflict) {
			return err
		}
	}
	return err
}

// newForecasts are those that are not recorded yet, once each.
func newForecasts(tx ledger.Tx, owner string, list []ledger.Forecast) ([]ledger.Forecast, error) {
	known, err := forecastsByID(tx, owner, list, func(f ledger.Forecast) string { return f.ID })
	if err != nil {
		return nil, err
	}
	var fresh []ledger.Forecast
	var different []int
	pools := map[string]bool{}
	for i, f := range list {
		f.OrganizationID = owner
		before, ok := known[f.ID]
		switch {
		case ok && before.AsStated() != f.AsStated():
			different = append(different, i)
		case ok:
		default:
			if err := f.CheckTimely(tx.Now(), i); err != nil {
				return nil, err
			}
			if err := findPool(tx, f.PoolID, pools, i); err != nil {
				return nil, err
			}
			known[f.ID], fresh = f, append(fresh, f)
		}
	}
	if len(different) > 0 {
		return nil, &ledger.BatchError{Field: "forecasts", Items: different, Err: ledger.ErrDiffers}
	}
	return fresh, nil
}

// forecastsByID reads the organization's forecasts that items name.
func forecastsByID[T any](tx ledger.Tx, owner string, items []T, id func(T) string) (
	map[string]ledger.Forecast, error) {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = id(item)
	}
	slices.Sort(names)
	found, err := tx.Forecasts(ledger.Scope{OrganizationID: owner}, ledger.ForecastFilter{IDs: slices.Compact(names)},
		0)
	known := make(map[string]ledger.Forecast, len(found))
	for _, f := range found {
		known[f.ID] = f
	}
	return known, err
}

// findPool refuses a pool that there is not.
func findPool(tx ledger.Tx, id string, known map[string]bool, i int) error {
	if known[id] {
		return nil
	}
	p, err := ledger.LivePool(tx, id)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && p.ID != id {
		return &ledger.InvalidError{Field: ledger.ForecastField(i, "pool_id"), Rule: "must be the id of a pool"}
	}
	known[id] = true
	return err
}

// checkDailyForecasts bounds what one key adds in a day.
func checkDailyForecasts(l *txn.Engine, tx ledger.Tx, actor ledger.Actor, n int) error {
	today := tx.Now().UTC().Truncate(24 * time.Hour)
	before, err := tx.ForecastCount(actor.KeyID, today)
	if err == nil && before+n > l.Config.ForecastsPerDay {
		return &ledger.TooManyError{Limit: l.Config.ForecastsPerDay, After: today.Add(24 * time.Hour).Sub(tx.Now())}
	}
	return err
}

// checkForecasts says what can never be right in a batch.
func checkForecasts(list []ledger.Forecast) error {
	if len(list) == 0 || len(list) > ledger.MaxForecasts {
		return &ledger.InvalidError{Field: "forecasts", Rule: fmt.Sprintf("must hold 1 to %d", ledger.MaxForecasts)}
	}
	for i, f := range list {
		if name, rule := f.BrokenRule(); name != "" {
			return &ledger.InvalidError{Field: ledger.ForecastField(i, name), Rule: rule}
		}
	}
	return nil
}
