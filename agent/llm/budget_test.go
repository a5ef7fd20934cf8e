package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
)

// answers is a server in memory whose answer a test writes: an HTTP status and
// the usage it claims.
type answers func() (status, promptTokens, completionTokens int)

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	status, prompt, completion := a()
	recorder := httptest.NewRecorder()
	recorder.WriteHeader(status)
	_, _ = fmt.Fprintf(recorder,
		`{"choices":[{"message":{"content":"{}"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, prompt, completion)
	return recorder.Result(), nil
}

// newTestModel returns the real client of such a server.
func newTestModel(t require.TestingT, a answers) llm.Model {
	c, err := llm.NewClient(llm.Config{BaseURL: "http://model.test/v1", Model: "m"}, &http.Client{Transport: a})
	require.NoError(t, err)
	return c
}

func acceptAny(llm.Reply) error { return nil }

func newBudget(t require.TestingT, c llm.BudgetConfig, state llm.BudgetState, clk clock.Clock) *llm.Budget {
	b, err := llm.NewBudget(c, state, clk)
	require.NoError(t, err)
	return b
}

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// Whatever a server answers and however the clock and the process behave, what
// is counted never passes a cap, and the model is never asked without room.
func TestSpendingStaysWithinTheCaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		caps := llm.Caps{
			Calls:  rapid.Int64Range(0, 12).Draw(t, "calls"),
			Tokens: rapid.Int64Range(0, 20_000).Draw(t, "tokens"),
			Cost:   money.MicroUSD(rapid.Int64Range(0, 40_000).Draw(t, "cost")),
		}
		c := llm.BudgetConfig{Caps: caps, Price: llm.Price{Prompt: 2 * money.USD, Completion: 8 * money.USD},
			Failures: 100}
		clk := clock.NewManual(noon)
		b := newBudget(t, c, llm.BudgetState{}, clk)
		asked := map[string]int64{}
		var r llm.Request
		model := newTestModel(t, func() (int, int, int) {
			asked[clk.Now().Format(time.DateOnly)]++
			return rapid.SampledFrom([]int{200, 200, 400, 429, 500}).Draw(t, "status"),
				rapid.IntRange(-5, len(r.User)).Draw(t, "prompt"),
				rapid.IntRange(-5, r.MaxTokens).Draw(t, "completion")
		})
		for range rapid.IntRange(1, 30).Draw(t, "asks") {
			r = llm.Request{User: strings.Repeat("a", rapid.IntRange(0, 3000).Draw(t, "length")),
				MaxTokens: rapid.IntRange(1, 2000).Draw(t, "max")}
			_, _ = b.Ask(context.Background(), model, r, acceptAny)
			s := b.State()
			require.LessOrEqual(t, s.Spent.Calls, caps.Calls)
			require.LessOrEqual(t, s.Spent.Tokens, caps.Tokens)
			require.LessOrEqual(t, s.Spent.Cost, caps.Cost)
			if rapid.Bool().Draw(t, "restart") {
				b = newBudget(t, c, s, clk)
			}
			clk.Advance(time.Duration(rapid.IntRange(0, 8).Draw(t, "hours")) * time.Hour)
		}
		for day, n := range asked {
			require.LessOrEqual(t, n, caps.Calls, day)
		}
	})
}

func TestBudgetIsSavedBeforeTheCallAndFailsClosed(t *testing.T) {
	t.Parallel()
	clk := clock.NewManual(noon)
	var saved []llm.BudgetState
	c := llm.BudgetConfig{Caps: llm.Caps{Calls: 5, Tokens: 100_000}, Save: func(s llm.BudgetState) error {
		saved = append(saved, s)
		return nil
	}}
	b := newBudget(t, c, llm.BudgetState{}, clk)
	_, err := b.Ask(t.Context(), newTestModel(t, func() (int, int, int) {
		require.Len(t, saved, 1, "a crash during the call finds it paid")
		require.Greater(t, saved[0].Spent.Tokens, int64(500))
		return 200, 10, 5
	}), ask, acceptAny)
	require.NoError(t, err)
	require.Equal(t, llm.Caps{Calls: 1, Tokens: 15}, b.State().Spent)

	c.Save = func(llm.BudgetState) error { return errors.New("disk full") }
	b = newBudget(t, c, b.State(), clk)
	_, err = b.Ask(t.Context(), newTestModel(t, func() (int, int, int) {
		t.Error("asked without a saved budget")
		return 200, 0, 0
	}), ask, acceptAny)
	require.Equal(t, llm.KindBudget, llm.KindOf(err))
}

func TestBreakerOpensAfterFailuresAndClosesByTheClock(t *testing.T) {
	t.Parallel()
	clk := clock.NewManual(noon)
	b := newBudget(t, llm.BudgetConfig{Caps: llm.Caps{Calls: 100, Tokens: 1_000_000}}, llm.BudgetState{}, clk)
	healthy, asked := false, 0
	model := newTestModel(t, func() (int, int, int) {
		asked++
		return 200, 0, 0
	})
	check := func(llm.Reply) error {
		if healthy {
			return nil
		}
		return errors.New("nonsense")
	}
	for range 3 {
		_, err := b.Ask(t.Context(), model, ask, check)
		require.Equal(t, llm.KindInvalid, llm.KindOf(err))
	}
	_, err := b.Ask(t.Context(), model, ask, check)
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, llm.KindBreaker, e.Kind)
	require.Equal(t, 10*time.Minute, e.RetryAfter)
	require.Equal(t, 3, asked)

	clk.Advance(10 * time.Minute)
	_, err = b.Ask(t.Context(), model, ask, check)
	require.Equal(t, llm.KindInvalid, llm.KindOf(err), "one probe after the cool-down")
	_, err = b.Ask(t.Context(), model, ask, check)
	require.Equal(t, llm.KindBreaker, llm.KindOf(err))

	clk.Advance(10 * time.Minute)
	healthy = true
	for range 2 {
		_, err = b.Ask(t.Context(), model, ask, check)
		require.NoError(t, err)
	}
}

func TestAClockThatGoesBackOpensNoFreshBudget(t *testing.T) {
	t.Parallel()
	clk := clock.NewManual(noon)
	b := newBudget(t, llm.BudgetConfig{Caps: llm.Caps{Calls: 1, Tokens: 100_000}}, llm.BudgetState{}, clk)
	model := newTestModel(t, func() (int, int, int) { return 200, 0, 0 })
	_, err := b.Ask(t.Context(), model, ask, acceptAny)
	require.NoError(t, err)
	for _, jump := range []time.Duration{-48 * time.Hour, 48 * time.Hour} {
		clk.Advance(jump)
		_, err = b.Ask(t.Context(), model, ask, acceptAny)
		require.Equal(t, llm.KindBudget, llm.KindOf(err))
	}
	clk.Advance(12 * time.Hour)
	_, err = b.Ask(t.Context(), model, ask, acceptAny)
	require.NoError(t, err, "a new day has a new budget")
}
