package agent_test

import (
	"context"
	"errors"
	"math/rand"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
)

// hanging is another side that takes a request and never answers.
type hanging struct{ reached chan struct{} }

func (h hanging) waitForRelease(ctx context.Context) error {
	close(h.reached)
	<-ctx.Done()
	return ctx.Err()
}

// RoundTrip makes it a model.
func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, h.waitForRelease(r.Context())
}

// slowPlans and slowForecasts make it a control plane that hangs at either request.
type (
	slowPlans struct {
		control
		hanging
	}
	slowForecasts struct {
		control
		hanging
	}
)

func (s *slowPlans) SetDemand(ctx context.Context, _ contract.AgentPlan) (contract.PlanOutcome, error) {
	return contract.PlanOutcome{}, s.waitForRelease(ctx)
}

func (s *slowForecasts) RecordForecasts(ctx context.Context, _ contract.AgentForecasts) (contract.Recorded, error) {
	return contract.Recorded{}, s.waitForRelease(ctx)
}

// useHangingModel gives the agent a predictor whose model is the hanging one.
func useHangingModel(t *testing.T, c *agent.Config, h hanging) {
	t.Helper()
	client, err := llm.NewClient(llm.Config{BaseURL: "http://model.test/v1", Model: "m"}, &http.Client{Transport: h})
	require.NoError(t, err)
	budget, err := llm.NewBudget(llm.BudgetConfig{Caps: llm.Caps{Calls: 9, Tokens: 1e6, Cost: money.USD}},
		llm.BudgetState{}, clock.NewManual(today))
	require.NoError(t, err)
	model, err := predict.NewForecaster(predict.ForecasterConfig{Name: "m", Timeout: time.Hour}, client, budget,
		rand.New(rand.NewSource(1)))
	require.NoError(t, err)
	c.Predict, err = predict.New(predict.Config{
		Series: forecast.Config{Period: 24 * time.Hour, Bin: width, Window: width}, Window: width, Horizon: 5 * width,
		MaxGPUs: 16,
	}, model)
	require.NoError(t, err)
}

// Sources go on while the other side hangs: what they bring is learned and durable, and the step that comes back
// decides with it.
func TestSourcesGoOnWhileTheOtherSideHangs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *agent.Config, hanging){
		"the model": useHangingModel,
		"the plan":  func(_ *testing.T, c *agent.Config, h hanging) { c.Control = &slowPlans{hanging: h} },
		"the forecasts": func(t *testing.T, c *agent.Config, h hanging) {
			c.Control, c.Secret = &slowForecasts{hanging: h}, []byte("secret")
			var err error
			c.Ledger, err = predict.OpenLedger(filepath.Join(t.TempDir(), "forecasts.jsonl"))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Ledger.Release()) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hanging{reached: make(chan struct{})}
			file := filepath.Join(t.TempDir(), "state.json")
			b := newBench(t, func(c *agent.Config) {
				c.State = file
				change(t, c, h)
			})
			b.playRush(t)
			b.handleItems(t, source.Item{Line: &source.Line{Text: "will run at ten"}})
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			stepped := make(chan error, 1)
			go func() {
				_, err := b.Step(ctx)
				stepped <- err
			}()
			waitWithin(t, h.reached, "nobody was asked")

			handled := make(chan struct{})
			go func() {
				defer close(handled)
				b.handleItems(t, jobItem("meanwhile", b.clock.Now(), 3),
					source.Item{Line: &source.Line{Text: "and at eleven"}})
			}()
			waitWithin(t, handled, "the sources wait for the other side")
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(data), "meanwhile")
			select {
			case err := <-stepped:
				require.Fail(t, "the step did not wait", "%v", err)
			default:
			}
			giveUp()
			select {
			case err := <-stepped:
				require.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
			case <-time.After(time.Minute):
				require.Fail(t, "the step does not end")
			}
		})
	}
}

func waitWithin(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.FailNow(t, what)
	}
}
