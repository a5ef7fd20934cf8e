package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/agent/outbox"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// plane takes batches as the control plane does: all or nothing, naming what is
// wrong.
type plane struct {
	now       time.Time
	forecasts map[string]contract.AgentForecast
	outcomes  map[string]int
	requests  int
	largest   int
	fails     error
	denies    map[string]bool // ids that are refused as conflicts
}

func newPlane() *plane {
	return &plane{forecasts: map[string]contract.AgentForecast{}, outcomes: map[string]int{}, denies: map[string]bool{}}
}

func refusalOf(status int, pointers ...string) error {
	p := contract.Problem{Status: status}
	for _, at := range pointers {
		p.Errors = append(p.Errors, contract.FieldError{Pointer: at})
	}
	return &client.Error{Problem: p}
}

func (p *plane) checkSize(n int) error {
	p.requests++
	p.largest = max(p.largest, n)
	return p.fails
}

func (p *plane) RecordForecasts(_ context.Context, in contract.AgentForecasts) (contract.Recorded, error) {
	if err := p.checkSize(len(in.Forecasts)); err != nil {
		return contract.Recorded{}, err
	}
	var wrong []string
	for i, f := range in.Forecasts {
		if p.now.After(f.Start.Add(2 * time.Minute)) {
			return contract.Recorded{}, refusalOf(http.StatusUnprocessableEntity, fmt.Sprintf("/forecasts/%d/start", i))
		}
		if p.denies[f.ID] {
			wrong = append(wrong, fmt.Sprintf("/forecasts/%d", i))
		}
	}
	if len(wrong) > 0 {
		return contract.Recorded{}, refusalOf(http.StatusConflict, wrong...)
	}
	for _, f := range in.Forecasts {
		p.forecasts[f.ID] = f
	}
	return contract.Recorded{New: len(in.Forecasts)}, nil
}

func (p *plane) CloseForecasts(_ context.Context, in contract.AgentOutcomes) (contract.Recorded, error) {
	if err := p.checkSize(len(in.Outcomes)); err != nil {
		return contract.Recorded{}, err
	}
	var wrong []string
	for i, o := range in.Outcomes {
		if _, ok := p.forecasts[o.ID]; !ok {
			wrong = append(wrong, fmt.Sprintf("/outcomes/%d", i))
		}
	}
	if len(wrong) > 0 {
		return contract.Recorded{}, refusalOf(http.StatusNotFound, wrong...)
	}
	for _, o := range in.Outcomes {
		p.outcomes[o.ID] = o.GPUs
	}
	return contract.Recorded{New: len(in.Outcomes)}, nil
}

func forecast(id string, start time.Time) contract.AgentForecast {
	return contract.AgentForecast{ID: id, Start: start, End: start.Add(10 * time.Minute)}
}

func TestWhatIsTakenIsGone(t *testing.T) {
	t.Parallel()
	var o outbox.Outbox
	p := newPlane()
	for i := range 2500 {
		o.Forecast(forecast(fmt.Sprint(i), noon.Add(time.Hour)))
	}
	dropped, err := o.Send(t.Context(), noon, p)
	require.NoError(t, err)
	require.Zero(t, dropped)
	require.Zero(t, o.Len())
	require.Len(t, p.forecasts, 2500)
	require.Equal(t, 1000, p.largest)
	require.Equal(t, 3, p.requests)
}

func TestAFailureKeepsEverything(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{
		"no network": errors.New("no route"), "a broken server": refusalOf(500),
		"another key":                   refusalOf(http.StatusForbidden, "/forecasts/0"),
		"a conflict that names nothing": refusalOf(http.StatusConflict),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o outbox.Outbox
			p := newPlane()
			p.fails = fails
			o.Forecast(forecast("a", noon.Add(time.Hour)))
			o.Outcome(contract.AgentOutcome{ID: "b", CountedAt: noon.Add(-time.Hour)})
			_, err := o.Send(t.Context(), noon, p)
			require.ErrorIs(t, err, fails)
			require.Equal(t, 2, o.Len())
			p.fails, p.forecasts["b"] = nil, contract.AgentForecast{}
			_, err = o.Send(t.Context(), noon, p)
			require.NoError(t, err)
			require.Zero(t, o.Len())
			require.Contains(t, p.forecasts, "a")
			require.Contains(t, p.outcomes, "b")
		})
	}
}

func TestItWaitsAsItIsTold(t *testing.T) {
	t.Parallel()
	var o outbox.Outbox
	p := newPlane()
	p.fails = &client.Error{Problem: contract.Problem{Status: http.StatusTooManyRequests, RetryAfter: 60}}
	o.Forecast(forecast("a", noon.Add(time.Hour)))
	_, err := o.Send(t.Context(), noon, p)
	require.Error(t, err)
	p.fails = nil
	_, err = o.Send(t.Context(), noon.Add(59*time.Second), p)
	require.NoError(t, err)
	require.Equal(t, 1, p.requests)
	require.Equal(t, 1, o.Len())
	_, err = o.Send(t.Context(), noon.Add(time.Minute), p)
	require.NoError(t, err)
	require.Zero(t, o.Len())
}

func TestAnOutcomeWaitsForTheOtherClock(t *testing.T) {
	t.Parallel()
	var o outbox.Outbox
	p := newPlane()
	p.forecasts["a"] = contract.AgentForecast{}
	o.Outcome(contract.AgentOutcome{ID: "a", GPUs: 3, CountedAt: noon})
	_, err := o.Send(t.Context(), noon.Add(59*time.Second), p)
	require.NoError(t, err)
	require.Zero(t, p.requests)
	_, err = o.Send(t.Context(), noon.Add(time.Minute), p)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 3}, p.outcomes)
}

// Whatever comes late or is refused, the rest arrives, and nothing that was never
// recorded is closed.
func TestWhatIsRefusedDoesNotStandInTheWay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var o outbox.Outbox
		p := newPlane()
		p.now = noon.Add(time.Duration(rapid.IntRange(-30, 30).Draw(t, "skew")) * time.Second)
		want := 0
		for i := range rapid.IntRange(0, 15).Draw(t, "forecasts") {
			f := forecast(fmt.Sprint(i),
				noon.Add(time.Duration(rapid.IntRange(-300, 300).Draw(t, "start"))*time.Second))
			p.denies[f.ID] = rapid.Bool().Draw(t, "denied")
			o.Forecast(f)
			o.Outcome(contract.AgentOutcome{ID: f.ID, GPUs: i, CountedAt: noon.Add(-time.Minute)})
			if !p.denies[f.ID] && !p.now.After(f.Start.Add(2*time.Minute)) && !noon.After(f.Start.Add(2*time.Minute)) {
				want++
			}
		}
		had := o.Len()
		dropped, err := o.Send(context.Background(), noon, p)
		require.NoError(t, err)
		require.Zero(t, o.Len())
		require.Len(t, p.forecasts, want)
		require.Len(t, p.outcomes, want)
		require.Equal(t, had-2*want, dropped)
	})
}

func TestAnEndlessOutageIsBounded(t *testing.T) {
	t.Parallel()
	var o outbox.Outbox
	for i := range 10_050 {
		o.Outcome(contract.AgentOutcome{ID: fmt.Sprint(i)})
	}
	require.Equal(t, 10_000, o.Len())
	require.Equal(t, "50", o.Outcomes[0].ID)
}
