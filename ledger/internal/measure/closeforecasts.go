package measure

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/ledger"
)

// CloseForecasts scores forecasts whose windows are over, all or none, and returns
// how many it closed. One that was closed before with the same number is left as
// it is; with another number it is a *BatchError, as are one that is not over and
// one that there is not. An agent closes its own, people below
// admins what their keys made.
func (l Forecasting) CloseForecasts(ctx context.Context, actor ledger.Actor, list []ledger.ForecastClosing) (
	int, error) {
	owner, err := actor.BookingOrganization()
	if err != nil {
		return 0, err
	}
	if err := checkClosings(list); err != nil {
		return 0, err
	}
	n := 0
	err = runMeasuring(ctx, l.Engine, func(tx ledger.Tx) error {
		closed, err := closedForecasts(tx, actor, owner, list)
		if n = len(closed); err != nil || n == 0 {
			return err
		}
		return tx.Save(ledger.Change{ClosedForecasts: closed})
	})
	return n, err
}

func checkClosings(list []ledger.ForecastClosing) error {
	if len(list) == 0 || len(list) > ledger.MaxForecasts {
		return &ledger.InvalidError{Field: "outcomes", Rule: fmt.Sprintf("must hold 1 to %d", ledger.MaxForecasts)}
	}
	for i, c := range list {
		if c.GPUs < 0 || c.GPUs > ledger.MaxGPUs { // more than any request may name
			return &ledger.InvalidError{Field: fmt.Sprintf("outcomes[%d].gpus", i),
				Rule: fmt.Sprintf("must be between 0 and %d", ledger.MaxGPUs)}
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
	}{{r.missing, ledger.ErrNotFound}, {r.different, ledger.ErrDiffers}, {r.early, ledger.ErrNotOver}} {
		if len(group.items) > 0 {
			return &ledger.BatchError{Field: "outcomes", Items: group.items, Err: group.err}
		}
	}
	return nil
}

// closedForecasts are the forecasts that a batch closes, scored.
func closedForecasts(tx ledger.Tx, actor ledger.Actor, owner string, list []ledger.ForecastClosing) (
	[]ledger.Forecast, error) {
	known, err := forecastsByID(tx, owner, list, func(c ledger.ForecastClosing) string { return c.ID })
	if err != nil {
		return nil, err
	}
	own := mayClose(tx, actor)
	var closed []ledger.Forecast
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
			if err := c.CheckTimely(f, tx.Now(), i); err != nil {
				return nil, err
			}
			f.Outcome = c.OutcomeOf(f, tx.Now())
			known[c.ID], closed = f, append(closed, f)
		}
	}
	// In one order everywhere, so that two senders of the same do not wait for each
	// other in a circle.
	slices.SortFunc(closed, func(a, b ledger.Forecast) int { return cmp.Compare(a.Seq, b.Seq) })
	return closed, refused.firstError()
}

// mayClose tells of which forecasts an actor may say how they came out: an agent of
// its own, admins of all, and other people of those that a key of theirs made, be
// it an agent's.
func mayClose(tx ledger.Tx, actor ledger.Actor) func(ledger.Forecast) bool {
	if actor.Kind != ledger.AgentKey && actor.AtLeast(ledger.Admin) {
		return func(ledger.Forecast) bool { return true }
	}
	theirs := map[string]bool{actor.KeyID: true}
	return func(f ledger.Forecast) bool {
		mine, known := theirs[f.MadeBy]
		if !known && actor.Kind != ledger.AgentKey {
			k, err := tx.Key(actor.Scope(), f.MadeBy)
			mine = err == nil && (k.ParentID == actor.KeyID || actor.UserID != "" && k.UserID == actor.UserID)
		}
		theirs[f.MadeBy] = mine
		return mine
	}
}
