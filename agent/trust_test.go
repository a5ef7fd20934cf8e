package agent_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/llm/scripted"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/core/evidence"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
)

// memory carries requests to a handler without a network.
type memory struct{ handler http.Handler }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	m.handler.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

var announcement = regexp.MustCompile(`run at (\S+Z)`)

// believeLines is a model that takes log lines at their word.
func believeLines(user string) string {
	found := announcement.FindAllStringSubmatch(user, -1)
	if len(found) == 0 {
		return `{"records":[]}`
	}
	start, err := time.Parse(time.RFC3339, found[len(found)-1][1])
	if err != nil {
		return `{"records":[]}`
	}
	return fmt.Sprintf(`{"records":[{"start":%q,"end":%q,"gpus_low":4,"gpus_mid":4,"gpus_high":4,`+
		`"probability":0.9,"reason_code":"announced"}]}`,
		start.Format(time.RFC3339), start.Add(width).Format(time.RFC3339))
}

// allowance is what the model may lose, in GPU-hours.
const allowance = 6.0

// listener is an agent that hears of every run a quarter of an hour ahead.
type listener struct {
	bench
	dir    string
	ledger *predict.Ledger
	now    time.Time
	runs   int
	logger *slog.Logger // nil: nobody listens
}

func newListener(t *testing.T) *listener {
	l := &listener{dir: t.TempDir(), now: today}
	l.restartAgent(t)
	for day := -21; day < 0; day++ {
		l.handleItems(t, jobItem(fmt.Sprintf("day %d", day),
			today.AddDate(0, 0, day).Add(time.Duration(-5*day)*time.Hour), 4))
	}
	return l
}

// restartAgent makes the agent anew from its files.
func (l *listener) restartAgent(t *testing.T) {
	if l.ledger != nil {
		require.NoError(t, l.ledger.Release())
	}
	client, err := llm.NewClient(llm.Config{BaseURL: "http://model.test/v1", Model: "m"},
		&http.Client{Transport: memory{&scripted.Server{Respond: believeLines}}})
	require.NoError(t, err)
	manual := clock.NewManual(l.now)
	budget, err := llm.NewBudget(llm.BudgetConfig{Caps: llm.Caps{Calls: 1e6, Tokens: 1e9, Cost: 1000 * money.USD}},
		llm.BudgetState{}, manual)
	require.NoError(t, err)
	model, err := predict.NewForecaster(predict.ForecasterConfig{Name: scripted.ModelName}, client, budget,
		rand.New(rand.NewSource(1)))
	require.NoError(t, err)
	p, err := predict.New(predict.Config{
		Series: forecast.Config{Period: 24 * time.Hour, Bin: width, Window: width}, Window: width, Horizon: 5 * width,
		MaxGPUs:  16,
		Evidence: evidence.Config{Allowance: allowance},
	}, model)
	require.NoError(t, err)
	l.ledger, err = predict.OpenLedger(filepath.Join(l.dir, "forecasts.jsonl"))
	require.NoError(t, err)
	l.bench = newBench(t, func(c *agent.Config) {
		c.Predict, c.Clock, c.Ledger, c.State = p, manual, l.ledger, filepath.Join(l.dir, "state.json")
		if l.logger != nil {
			c.Logger = l.logger
		}
	})
	l.bench.clock, l.predict = manual, p
	t.Cleanup(func() { _ = l.ledger.Release() })
}

// playMorning announces a run for a quarter of an hour later, which comes or does not,
// and returns the report of three minutes before its start.
func (l *listener) playMorning(t *testing.T, comes bool) agent.Report {
	t.Helper()
	l.runs++
	start := l.now.Add(15 * time.Minute)
	l.bench.clock.Set(l.now)
	l.handleItems(t, source.Item{Line: &source.Line{Text: "will run at " + start.Format(time.RFC3339)}})
	var before agent.Report
	for minute := range 40 {
		at := l.now.Add(time.Duration(minute) * time.Minute)
		if minute%3 != 0 {
			continue
		}
		l.bench.clock.Set(at)
		if comes && at.Equal(start) {
			l.handleItems(t, jobItem(fmt.Sprintf("run %d", l.runs), at, 4))
		}
		rep, err := l.Step(t.Context())
		require.NoError(t, err)
		if minute == 12 {
			before = rep
		}
	}
	// No hour of the day is like another.
	l.now = l.now.Add(time.Duration(90+17*(l.runs%23)) * time.Minute)
	return before
}

func (l *listener) trackRecord() evidence.TrackRecord {
	return l.predict.TrackRecord(predict.Announced)
}

func TestEvidenceEarnsItsSayAndLosesIt(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	for range 25 {
		l.playMorning(t, true)
	}
	good := l.trackRecord()
	require.True(t, good.Acting)
	require.Greater(t, good.Trust, 0.7)
	require.Greater(t, good.Weight, 0.25, "more than at first")
	require.Greater(t, good.Earned, good.Spent)
	scores := l.ledger.Summary()
	require.Less(t, scores.LLM.LogLoss, scores.Without.LogLoss)
	rep := l.playMorning(t, true)
	require.NotEmpty(t, rep.Prediction.Holds, "what is announced is held")
	require.Equal(t, 4, rep.Plan.Windows[0].GPUs)

	before := l.trackRecord()
	l.restartAgent(t)
	require.Equal(t, before, l.trackRecord(), "a restart forgets nothing")

	spent, earned := l.trackRecord().Spent, l.trackRecord().Earned
	held := 0
	for range 25 {
		if rep := l.playMorning(t, false); len(rep.Prediction.Holds) > 0 {
			held++
		}
	}
	bad := l.trackRecord()
	require.LessOrEqual(t, held, 20, "demoted within twenty closes")
	require.Zero(t, bad.Weight)
	require.Less(t, bad.Spent-spent-(bad.Earned-earned), allowance*1.2)
	require.Empty(t, l.playMorning(t, false).Prediction.Holds, "it is only watched")
}

// A restart in the middle of a hold goes on as if nothing had happened.
func TestARestartInTheMiddleOfAHold(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	for range 3 {
		l.playMorning(t, true)
	}
	start := l.now.Add(15 * time.Minute)
	l.bench.clock.Set(l.now)
	l.handleItems(t, source.Item{Line: &source.Line{Text: "will run at " + start.Format(time.RFC3339)}})
	l.now = start.Add(-3 * time.Minute)
	l.bench.clock.Set(l.now)
	_, err := l.Step(t.Context())
	require.NoError(t, err)
	before, err := json.Marshal(l.predict)
	require.NoError(t, err)
	l.restartAgent(t)
	after, err := json.Marshal(l.predict)
	require.NoError(t, err)
	require.JSONEq(t, string(before), string(after))
	rep, err := l.Step(t.Context())
	require.NoError(t, err)
	require.Len(t, rep.Prediction.Holds, 1)
}
