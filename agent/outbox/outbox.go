// Package outbox keeps forecasts and their outcomes until the control plane has
// them.
//
// A forecast must arrive before its window begins, or it is worth nothing as
// evidence: one that is too late is dropped, with its outcome. What the control
// plane refuses for good is also dropped, so that it does not block the rest.
// Everything else is sent again until it is accepted; sending it twice changes
// nothing.
package outbox

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// Receiver takes batches, all of one or nothing of it. Its refusals are
// *client.Error.
type Receiver interface {
	RecordForecasts(ctx context.Context, in contract.AgentForecasts) (contract.Recorded, error)
	CloseForecasts(ctx context.Context, in contract.AgentOutcomes) (contract.Recorded, error)
}

const (
	// batch is the most items of one request.
	batch = 1000
	// most is how many of each are kept while the control plane is away; then the
	// oldest go.
	most = 10_000
	// late is how long after its start a forecast is still taken.
	late = 2 * time.Minute
	// clocks is how far two clocks may be apart. An outcome waits for so long, since
	// it is refused while the window is not over by the other clock.
	clocks = time.Minute
	// refusals is how many batches may be refused in one Send: a refusal may name
	// only one of the items that it would refuse.
	refusals = 20
)

// Outbox is what was not taken yet. The zero value is empty. It holds only what
// may leave, and is stored as JSON. It is not safe for concurrent use.
type Outbox struct {
	Forecasts []contract.AgentForecast `json:"forecasts,omitempty"`
	Outcomes  []contract.AgentOutcome  `json:"outcomes,omitempty"`

	after time.Time // nothing is sent before
}

// Forecast adds a forecast.
func (o *Outbox) Forecast(f contract.AgentForecast) { o.Forecasts = pushBounded(o.Forecasts, f) }

// Outcome adds how a forecast came out.
func (o *Outbox) Outcome(c contract.AgentOutcome) { o.Outcomes = pushBounded(o.Outcomes, c) }

func pushBounded[T any](list []T, x T) []T {
	list = append(list, x)
	return list[max(0, len(list)-most):]
}

// Len is how many items wait.
func (o *Outbox) Len() int { return len(o.Forecasts) + len(o.Outcomes) }

// IsZero reports whether there is nothing to store.
func (o *Outbox) IsZero() bool { return o.Len() == 0 }

// Clone returns a copy that shares nothing with o: one can be sent while the other
// is stored.
func (o *Outbox) Clone() Outbox {
	return Outbox{Forecasts: slices.Clone(o.Forecasts), Outcomes: slices.Clone(o.Outcomes), after: o.after}
}

// Send sends what may be sent now and keeps what was not taken. The error is why
// something is kept; dropping is none. It returns how many items were dropped.
func (o *Outbox) Send(ctx context.Context, now time.Time, to Receiver) (dropped int, err error) {
	if now.Before(o.after) {
		return 0, nil
	}
	before := o.Len()
	o.forgetForecasts(func(f contract.AgentForecast) bool { return now.After(f.Start.Add(late)) })
	dropped = before - o.Len()
	rest, gone, err := deliverAll(o.Forecasts, "forecasts", func(list []contract.AgentForecast) error {
		_, err := to.RecordForecasts(ctx, contract.AgentForecasts{Forecasts: list})
		return err
	})
	o.Forecasts = rest
	before = o.Len()
	o.dropOrphans(gone)
	dropped += len(gone) + before - o.Len()
	if err != nil {
		return dropped, o.pauseIfAsked(now, err)
	}
	n, err := o.sendOutcomes(ctx, now, to)
	return dropped + n, o.pauseIfAsked(now, err)
}

// sendOutcomes sends the outcomes whose time has come.
func (o *Outbox) sendOutcomes(ctx context.Context, now time.Time, to Receiver) (int, error) {
	var due, early []contract.AgentOutcome
	for _, c := range o.Outcomes {
		if c.CountedAt.Add(clocks).After(now) {
			early = append(early, c)
		} else {
			due = append(due, c)
		}
	}
	rest, gone, err := deliverAll(due, "outcomes", func(list []contract.AgentOutcome) error {
		_, err := to.CloseForecasts(ctx, contract.AgentOutcomes{Outcomes: list})
		return err
	})
	o.Outcomes = append(rest, early...)
	return len(gone), err
}

// forgetForecasts drops forecasts with their outcomes.
func (o *Outbox) forgetForecasts(drop func(contract.AgentForecast) bool) {
	var gone []contract.AgentForecast
	o.Forecasts = slices.DeleteFunc(o.Forecasts, func(f contract.AgentForecast) bool {
		if drop(f) {
			gone = append(gone, f)
			return true
		}
		return false
	})
	o.dropOrphans(gone)
}

// dropOrphans drops the outcomes of forecasts that nobody recorded.
func (o *Outbox) dropOrphans(gone []contract.AgentForecast) {
	ids := map[string]bool{}
	for _, f := range gone {
		ids[f.ID] = true
	}
	o.Outcomes = slices.DeleteFunc(o.Outcomes, func(c contract.AgentOutcome) bool { return ids[c.ID] })
}

// pauseIfAsked keeps to the time after which the control plane wants to be asked again.
func (o *Outbox) pauseIfAsked(now time.Time, err error) error {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		o.after = now.Add(time.Duration(refused.Problem.RetryAfter) * time.Second)
	}
	return err
}

// deliverAll sends a list in batches. It returns what is left after an error, and
// what was refused for good.
func deliverAll[T any](list []T, field string, send func([]T) error) (rest, gone []T, err error) {
	for tries := 0; len(list) > 0; {
		part := list[:min(len(list), batch)]
		err := send(part)
		wrong := namedItems(err, field, len(part))
		switch {
		case err == nil:
			list = list[len(part):]
		case len(wrong) == 0 || tries == refusals:
			return list, gone, err
		default:
			tries++
			var kept []T
			for i, x := range list {
				if wrong[i] {
					gone = append(gone, x)
				} else {
					kept = append(kept, x)
				}
			}
			list = kept
		}
	}
	return nil, gone, nil
}

// namedItems are the items of a batch that a refusal names and that will not be taken
// later either.
func namedItems(err error, field string, n int) map[int]bool {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		return nil
	}
	switch refused.Problem.Status {
	case http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
	default:
		return nil
	}
	found := map[int]bool{}
	for _, e := range refused.Problem.Errors {
		path := strings.Split(e.Pointer, "/") // "", field, index, ...
		if len(path) < 3 || path[1] != field {
			continue
		}
		if i, err := strconv.Atoi(path[2]); err == nil && i >= 0 && i < n {
			found[i] = true
		}
	}
	return found
}
