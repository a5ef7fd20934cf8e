package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/egress"
	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/llm/scripted"
	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/jobs"
	"github.com/forewarm/forewarm/agent/source/tail"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/core/evidence"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
)

// How long a simulated machine of the demo takes to boot: at the least, at the median,
// and in 95 of 100 boots.
const (
	BootMin = 7 * time.Second
	BootP50 = 9 * time.Second
	BootP95 = 11 * time.Second
)

// waitWorth is how many idle GPU-hours an hour of one waiting job is worth.
const waitWorth = 32

// pace is that of the forecaster's clock: it takes the period of the demo for an hour,
// which is one of the periods at which it expects what comes by the clock.
const pace = int(time.Hour / Period)

// look is how often the demo's agent looks.
const look = 2 * time.Second

// Agent is the real agent on the demo's files.
type Agent struct {
	agent   *agent.Agent
	sources []source.Source
	out     *egress.Egress
	ledger  *predict.Ledger
	log     *slog.Logger
	tell    func(text string)
	said    string
}

// AgentConfig says what the demo's agent works with.
type AgentConfig struct {
	Files  Files
	API    string // base URL of the control plane
	Key    obs.Secret
	Model  string // base URL of the scripted model's server
	PoolID string
	Log    *slog.Logger
	Tell   func(text string) // hears what the agent thinks
}

// NewAgent wires the agent as forewarm-agent does, with the demo's time scale.
func NewAgent(c AgentConfig) (*Agent, error) {
	a := &Agent{log: c.Log, tell: c.Tell}
	at := func(name string) string { return filepath.Join(c.Files.Agent, name) }
	var err error
	if a.out, err = egress.New(egress.Config{ControlPlane: c.API, Model: c.Model,
		Ledger: at("egress.jsonl")}); err != nil {
		return nil, fmt.Errorf("opening the agent's egress: %w", err)
	}
	control, err := client.New(c.API, c.Key.Reveal(), a.out.ControlPlane())
	if err != nil {
		return nil, err
	}
	predictor, err := a.newPredictor(c.Model)
	if err != nil {
		return nil, err
	}
	scrub, err := redact.New(redact.Config{})
	if err != nil {
		return nil, fmt.Errorf("making the redactor: %w", err)
	}
	if a.ledger, err = predict.OpenLedger(at("forecasts.jsonl")); err != nil {
		return nil, err
	}
	secret, err := secretAt(at("secret"))
	if err != nil {
		return nil, err
	}
	a.agent, err = agent.New(agent.Config{
		Tenant: "demo", Secret: secret, PoolID: c.PoolID, Mode: agent.Auto, Clock: clock.System{}, Logger: c.Log,
		Predict: predictor, Scrub: scrub,
		Control: control, Ledger: a.ledger, State: at("state.json"),
		Place: place.Config{WaitWorth: waitWorth, Boot: BootP50, MaxGPUs: sweepGPUs},
	})
	if err != nil {
		return nil, err
	}
	return a, a.openSources(c.Files, at("positions.json"))
}

// secretAt reads the secret of the names under which forecasts are sent, and makes
// it the first time.
func secretAt(path string) ([]byte, error) {
	secret, err := os.ReadFile(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("making the agent's secret: %w", err)
	}
	return secret, os.WriteFile(path, secret, 0o600)
}

func (a *Agent) newPredictor(model string) (*predict.Predictor, error) {
	asked, err := llm.NewClient(llm.Config{BaseURL: model + "/v1", Model: scripted.ModelName}, a.out.Model())
	if err != nil {
		return nil, fmt.Errorf("making the model's client: %w", err)
	}
	budget, err := llm.NewBudget(llm.BudgetConfig{
		Caps: llm.Caps{Calls: 2000, Tokens: 20_000_000, Cost: money.USD / 5}, Price: llm.Price{},
	}, llm.BudgetState{}, clock.System{})
	if err != nil {
		return nil, fmt.Errorf("making the model's budget: %w", err)
	}
	forecaster, err := predict.NewForecaster(predict.ForecasterConfig{Name: scripted.ModelName}, asked, budget,
		rand.Reader)
	if err != nil {
		return nil, err
	}
	return predict.New(predictConfig(), forecaster)
}

func predictConfig() predict.Config {
	return predict.Config{
		Series: forecast.Config{Period: Period, Bin: bin, Window: bin, PriorWeight: 2}, Window: bin, Horizon: Period,
		MaxGPUs: 8, Pace: pace,
		Terms: evidence.Terms{WaitPrice: waitWorth, GPUPrice: 1, Boot: BootP50},
		Late:  BootP95 - BootP50 + jitter,
	}
}

func (a *Agent) openSources(f Files, positions string) error {
	checkpoint, err := history.OpenCheckpoint(positions)
	if err != nil {
		return err
	}
	rows, err := jobs.New(jobs.Config{Path: f.History, Name: "history", Format: jobs.CSV, Checkpoint: checkpoint})
	if err != nil {
		return fmt.Errorf("following the history: %w", err)
	}
	lines, err := tail.New(tail.Config{Path: f.Log, Name: "log", Checkpoint: checkpoint})
	if err != nil {
		return fmt.Errorf("following the log: %w", err)
	}
	a.sources = []source.Source{rows, lines}
	return nil
}

// Run reads, predicts and places until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	done := make(chan error, len(a.sources))
	for _, s := range a.sources {
		go func() {
			done <- source.Run(ctx, source.Runner{
				Source: s, Every: time.Second, Handle: a.ingestItems,
				OnError: func(err error) { a.log.Warn("the demo's agent could not read", "error", err) },
			})
		}()
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			a.placeOnce(ctx)
		}
	}
	var err error
	for range a.sources {
		err = errors.Join(err, <-done)
	}
	return errors.Join(err, a.ledger.Release(), a.out.Close())
}

func (a *Agent) ingestItems(ctx context.Context, items []source.Item) error {
	jobs, lines := 0, 0
	for _, i := range items {
		if i.Record != nil {
			jobs++
		}
		if i.Line != nil {
			lines++
		}
	}
	switch {
	case jobs > 1:
		a.tell(fmt.Sprintf("read %d jobs of a synthetic history", jobs))
	case lines > 0:
		a.tell(fmt.Sprintf("read %d log line: asks the scripted model (not a real one)", lines))
	}
	return a.agent.Handle(ctx, items)
}

// placeOnce looks once, and says what is new.
func (a *Agent) placeOnce(ctx context.Context) {
	rep, err := a.agent.Step(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("the demo's agent could not place", "error", err)
		}
		return
	}
	for i, c := range rep.Choices {
		if c.GPUs == 0 {
			continue
		}
		why := c.Why
		if i > 0 || why == "" {
			why = "announced in the log, as the scripted model reads it"
		}
		key := fmt.Sprint(c.GPUs, i > 0)
		if key != a.said {
			a.said = key
			a.tell(fmt.Sprintf("keeps %d GPUs warm from %s: %s", c.GPUs, formatTime(c.Window.Start), why))
		}
		return
	}
	a.said = ""
}
