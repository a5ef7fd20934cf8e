package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/statefile/statefiletest"
)

const (
	tenant = "lab"
	poolID = "pol_00000000000000000000000001"
	width  = 6 * time.Minute
)

// today is the day after three weeks in which four GPUs were wanted every
// morning at nine.
var today = time.Date(2026, 3, 23, 0, 0, 0, 0, time.UTC)

// control is the other side: it remembers what it is told, or fails.
type control struct {
	plans     []contract.AgentPlan
	forecasts []contract.AgentForecast
	outcomes  []contract.AgentOutcome
	fails     error
	deaf      error // to forecasts
}

func (c *control) SetDemand(_ context.Context, plan contract.AgentPlan) (contract.PlanOutcome, error) {
	if c.fails != nil {
		return contract.PlanOutcome{}, c.fails
	}
	c.plans = append(c.plans, plan)
	return contract.PlanOutcome{}, nil
}

func (c *control) RecordForecasts(_ context.Context, in contract.AgentForecasts) (contract.Recorded, error) {
	if c.deaf == nil {
		c.forecasts = append(c.forecasts, in.Forecasts...)
	}
	return contract.Recorded{New: len(in.Forecasts)}, c.deaf
}

func (c *control) CloseForecasts(_ context.Context, in contract.AgentOutcomes) (contract.Recorded, error) {
	if c.deaf == nil {
		c.outcomes = append(c.outcomes, in.Outcomes...)
	}
	return contract.Recorded{New: len(in.Outcomes)}, c.deaf
}

// bench is an agent with its surroundings.
type bench struct {
	*agent.Agent
	clock   *clock.Manual
	control *control
	predict *predict.Predictor
}

func newBench(t testing.TB, change func(*agent.Config)) bench {
	t.Helper()
	b, err := tryBench(t, change)
	require.NoError(t, err)
	return b
}

func tryBench(t testing.TB, change func(*agent.Config)) (bench, error) {
	t.Helper()
	b := bench{clock: clock.NewManual(today), control: &control{}}
	var err error
	b.predict, err = predict.New(predict.Config{
		Series: forecast.Config{Period: 24 * time.Hour, Bin: width, Window: width, PriorWeight: 1}, Window: width,
		Horizon: 5 * width, MaxGPUs: 16,
	}, nil)
	require.NoError(t, err)
	scrub, err := redact.New(redact.Config{})
	require.NoError(t, err)
	cfg := agent.Config{
		Tenant: tenant, PoolID: poolID, Mode: agent.Auto, Clock: b.clock, Logger: slog.New(slog.DiscardHandler),
		Predict: b.predict, Scrub: scrub, Control: b.control,
		Place: place.Config{WaitWorth: 32, Boot: 5 * time.Minute, MaxGPUs: 16},
	}
	if change != nil {
		change(&cfg)
	}
	b.Agent, err = agent.New(cfg)
	return b, err
}

// morningJobs are the jobs of the three weeks before today.
func morningJobs() (items []source.Item) {
	for day := -21; day < 0; day++ {
		for n := range 2 {
			at := today.AddDate(0, 0, day).Add(9*time.Hour + time.Duration(n)*time.Minute)
			items = append(items, jobItem(fmt.Sprintf("job %d of day %d", n, day), at, 2))
		}
	}
	return items
}

// playRush gives an agent a day with a burst of jobs every hour, and puts it
// into the next burst.
func (b bench) playRush(t testing.TB) {
	t.Helper()
	var items []source.Item
	for hour := -24; hour <= 0; hour++ {
		for n := range 12 {
			at := today.Add(time.Duration(hour)*time.Hour + time.Duration(n)*time.Minute)
			if at.After(today.Add(inRush)) {
				continue
			}
			j := jobItem(fmt.Sprintf("hour %d, %d", hour, n), at, 2)
			j.Record.Duration = 20 * time.Minute
			items = append(items, j)
		}
	}
	b.clock.Set(today.Add(inRush))
	b.handleItems(t, items...)
}

// inRush is a time at which more jobs are sure to come.
const inRush = 4 * time.Minute

func jobItem(id string, at time.Time, gpus int) source.Item {
	return source.Item{Record: &history.Record{ID: id, Tenant: tenant, Submitted: at, GPUs: gpus}}
}

// learnedState is all that the statistics know, to be compared.
func (b bench) learnedState(t testing.TB) string {
	t.Helper()
	data, err := json.Marshal(b.predict)
	require.NoError(t, err)
	return string(data)
}

func (b bench) handleItems(t testing.TB, items ...source.Item) {
	t.Helper()
	require.NoError(t, b.Handle(context.Background(), items))
}

func TestAutoSendsTheWholePlan(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.playRush(t)
	rep, err := b.Step(t.Context())
	require.NoError(t, err)
	require.True(t, rep.Sent)
	require.Len(t, b.control.plans, 1)
	require.Equal(t, rep.Plan, b.control.plans[0])
	require.Equal(t, poolID, rep.Plan.PoolID)
	require.Len(t, rep.Plan.Windows, 1)
	w := rep.Plan.Windows[0]
	require.Equal(t, b.clock.Now(), w.Start)
	require.True(t, w.End.After(rep.Prediction.Now.Next), "it stands until the next look")
	require.GreaterOrEqual(t, w.GPUs, 2)
	require.Equal(t, rep.Choices[0].GPUs, w.GPUs)
	require.Equal(t, contract.ReasonRecentRate, w.ReasonCode)
	require.Greater(t, w.Probability, 0.1)

	b.clock.Set(today.Add(12 * time.Hour))
	_, err = b.Step(t.Context())
	require.NoError(t, err)
	require.NotNil(t, b.control.plans[1].Windows)
	require.Empty(t, b.control.plans[1].Windows, "an empty plan is sent too: it gives up what was kept")
}

func TestAPlanNeverBeginsInThePast(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.playRush(t)
	for at := today.Add(inRush); at.Before(today.Add(20 * time.Minute)); at = at.Add(17*time.Second +
		300*time.Millisecond) {
		b.clock.Set(at)
		rep, err := b.Step(t.Context())
		require.NoError(t, err)
		for _, w := range rep.Plan.Windows {
			require.False(t, w.Start.Before(at.Truncate(time.Second)), "%s at %s", w.Start, at)
			require.True(t, w.End.After(w.Start))
		}
	}
	require.Greater(t, len(b.control.plans), 50)
}

func TestObserveSendsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *agent.Config) { c.Mode = agent.Observe })
	b.playRush(t)
	rep, err := b.Step(t.Context())
	require.NoError(t, err)
	require.False(t, rep.Sent)
	require.NotEmpty(t, rep.Plan.Windows, "it knows what it would do")
	require.Empty(t, b.control.plans)
	newBench(t, func(c *agent.Config) { c.Mode, c.Control, c.PoolID = agent.Observe, nil, "" })
}

func TestAJobIsLearnedOnce(t *testing.T) {
	t.Parallel()
	once, often := newBench(t, nil), newBench(t, nil)
	once.handleItems(t, morningJobs()...)
	for _, item := range morningJobs() {
		often.handleItems(t, item)
		often.handleItems(t, item, item)
	}
	often.handleItems(t, morningJobs()...)
	require.Equal(t, once.learnedState(t), often.learnedState(t))
}

func TestAJobIsLearnedOnceAcrossRestarts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.json")
	keep := func(c *agent.Config) { c.State = file }
	first := newBench(t, keep)
	first.handleItems(t, morningJobs()...)
	second := newBench(t, keep)
	require.Equal(t, first.learnedState(t), second.learnedState(t), "nothing is forgotten")
	last := morningJobs()[len(morningJobs())-1]
	second.handleItems(t, last)
	require.Equal(t, first.learnedState(t), second.learnedState(t))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no half-written files stay")
}

func TestYearsOfHistoryAreNotRemembered(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.json")
	b := newBench(t, func(c *agent.Config) { c.State = file })
	b.handleItems(t, morningJobs()...)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var state struct{ Seen map[string]any }
	require.NoError(t, json.Unmarshal(data, &state))
	require.Len(t, state.Seen, 2*2+1, "the ids of two days: the job exactly two days before the newest counts")
}

func TestADamagedStateNamesTheFix(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"not JSON": "{", "empty": "", "another version": `{"version":9,"learned":{}}`,
		"nothing learned":  `{"version":2}`,
		"other statistics": `{"version":2,"learned":{"version":2,"window_seconds":3600,"tenants":{}}}`,
	} {
		file := filepath.Join(t.TempDir(), "state.json")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := tryBench(t, func(c *agent.Config) { c.State = file })
		require.ErrorContains(t, err, "to learn again, delete it", name)
		require.ErrorContains(t, err, file, name)
	}
}

func TestAStateThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.json")
	b := newBench(t, func(c *agent.Config) { c.State = file })
	unblock := statefiletest.Block(t, file)
	require.Error(t, b.Handle(t.Context(), morningJobs()), "the source must not move on")
	unblock()
	b.handleItems(t, morningJobs()...)
	again := newBench(t, func(c *agent.Config) { c.State = file })
	require.Equal(t, b.learnedState(t), again.learnedState(t))
}

func TestRowsThatCannotCountAreTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.handleItems(t, morningJobs()...)
	before := b.learnedState(t)
	other := jobItem("of others", today, 1)
	other.Record.Tenant = "physics"
	b.handleItems(t, jobItem("too late", today.AddDate(0, 0, -10), 1),
		jobItem("from the future", today.Add(time.Hour), 1), other)
	require.Equal(t, before, b.learnedState(t))
	rep, err := b.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, rep.Late, "jobs of others are no fault")
}

// A history sorted by the end of its jobs counts as one sorted by their start.
func TestABatchMayBeInAnyOrder(t *testing.T) {
	t.Parallel()
	want := newBench(t, nil)
	want.handleItems(t, morningJobs()...)
	expected := want.learnedState(t)
	rapid.Check(t, func(r *rapid.T) {
		b := newBench(t, nil)
		b.handleItems(t, rapid.Permutation(morningJobs()).Draw(r, "order")...)
		require.Equal(t, expected, b.learnedState(t))
	})
}

func TestForecastsAreScored(t *testing.T) {
	t.Parallel()
	ledger, err := predict.OpenLedger(filepath.Join(t.TempDir(), "forecasts.jsonl"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ledger.Release()) })
	b := newBench(t, func(c *agent.Config) { c.Mode, c.Ledger = agent.Observe, ledger })
	b.playRush(t)
	_, err = b.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, ledger.Summary().Open)
	b.clock.Advance(time.Minute)
	b.handleItems(t, jobItem("a", b.clock.Now(), 2), jobItem("b", b.clock.Now(), 2))
	_, err = b.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, ledger.Summary().Open, "one at a time")
	b.clock.Set(today.Add(inRush + 10*time.Minute))
	rep, err := b.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, rep.Closed)
	require.Positive(t, rep.Scores.Statistics.N)
	rep, err = newBench(t, nil).Step(t.Context())
	require.NoError(t, err)
	require.Zero(t, rep.Scores, "without a ledger there is no score")
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*agent.Config){
		"mode":          func(c *agent.Config) { c.Mode = "eager" },
		"control plane": func(c *agent.Config) { c.Control = nil },
		"and a pool":    func(c *agent.Config) { c.PoolID = "" },
		"wait_worth":    func(c *agent.Config) { c.Place.WaitWorth = -1 },
	} {
		_, err := tryBench(t, change)
		require.ErrorContains(t, err, want)
	}
}
