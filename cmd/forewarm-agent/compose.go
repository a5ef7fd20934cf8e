package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/egress"
	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/glob"
	"github.com/forewarm/forewarm/agent/source/jobs"
	"github.com/forewarm/forewarm/agent/source/tail"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
)

// Files of the state folder.
const (
	stateFile      = "state.json"
	checkpointFile = "checkpoint.json"
	forecastFile   = "forecasts.jsonl"
	egressFile     = "egress.jsonl"
	budgetFile     = "budget.json"
	saltFile       = "salt"
)

// composition is an agent with everything that it works with.
type composition struct {
	agent   *agent.Agent
	model   *predict.Forecaster // nil: none is configured
	sources []source.Source
	closers []func() error
}

// composer puts a composition together.
type composer struct {
	cfg    config
	file   file
	clock  clock.Clock
	logger *slog.Logger
	// silent sends nothing to anybody and leaves no trace: a dry run.
	silent bool
	// home is the state folder that a dry run works on a copy of; empty for others.
	home string
	// patient waits for a control plane that is away, instead of ending.
	patient bool
}

// composeAgent builds the agent that the configuration describes. Close the result,
// also after an error.
func (p composer) composeAgent(ctx context.Context) (_ *composition, err error) {
	out := &composition{}
	if err := os.MkdirAll(p.cfg.StateDir, 0o700); err != nil {
		return out, fmt.Errorf("making the state folder: %w", err)
	}
	p.warnOfLostSalt()
	scrub, err := redact.New(redact.Config{Patterns: p.cfg.Redact.Patterns, Words: p.cfg.Redact.Words})
	if err != nil {
		return out, p.blameRedact(err)
	}
	cfg := agent.Config{
		Tenant: p.cfg.Tenant, PoolID: p.cfg.Pool, Mode: p.cfg.Mode, Place: p.cfg.placeConfig(), Clock: p.clock,
		Logger: p.logger,
		Scrub:  scrub, State: p.statePath(stateFile), Sources: p.cfg.historyNames(),
	}
	var model *predict.Forecaster
	if !p.silent {
		if model, err = p.openEgress(ctx, out, &cfg); err != nil {
			return out, err
		}
		out.model = model
	}
	if cfg.Predict, err = predict.New(p.cfg.predictConfig(), model); err != nil {
		return out, err
	}
	if out.agent, err = agent.New(cfg); err != nil {
		return out, p.blameState(err)
	}
	return out, p.openSources(out)
}

// blameRedact finds the line of a pattern or word that cannot be used.
func (p composer) blameRedact(err error) error {
	text := strings.TrimPrefix(err.Error(), "making a redactor: ")
	var i int
	for form, key := range map[string]string{"pattern %d": "patterns", "word %d": "words"} {
		if n, _ := fmt.Sscanf(text, form, &i); n == 1 {
			return p.file.errorAt(fmt.Sprintf("redact.%s.%d", key, i-1), text, "change it")
		}
	}
	return p.file.errorAt("redact", text, "change it")
}

// blameState says what to do about a state that another configuration's agent learned.
func (p composer) blameState(err error) error {
	if foreign, ok := errors.AsType[*agent.ForeignStateError](err); ok {
		return p.file.errorAt("state_dir", "holds what was learned from "+strings.Join(foreign.Sources, ", ")+
			", of which nothing is read here",
			"name a folder of its own, or begin again: delete "+cmp.Or(p.home, p.cfg.StateDir))
	}
	return err
}

// openEgress opens the one door to the network and what goes through it.
func (p composer) openEgress(ctx context.Context, out *composition, cfg *agent.Config) (*predict.Forecaster, error) {
	door := egress.Config{ControlPlane: p.cfg.API.Endpoint, Ledger: p.statePath(egressFile), Clock: p.clock}
	if p.cfg.LLM != nil {
		door.Model = p.cfg.LLM.BaseURL
	}
	e, err := egress.New(door)
	if err != nil {
		return nil, p.blameEgress(err)
	}
	out.closers = append(out.closers, e.Close)
	forecasts, err := predict.OpenLedger(p.statePath(forecastFile))
	if err != nil {
		return nil, err
	}
	out.closers = append(out.closers, forecasts.Release)
	cfg.Ledger = forecasts
	if cfg.Secret, err = loadSalt(p.statePath(saltFile)); err != nil {
		return nil, err
	}
	if p.cfg.Mode == agent.Auto {
		c, id, err := p.newControlPlane(ctx, e)
		if err != nil {
			return nil, err
		}
		cfg.Control, cfg.Pools, cfg.Placed, cfg.PoolID = c, c, c, id
	}
	if p.cfg.LLM == nil {
		return nil, nil
	}
	return p.newForecaster(e)
}

func (p composer) blameEgress(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "control plane URL: "); ok {
		return p.file.errorAt("api.endpoint", text, "write https://forewarm.example.com")
	}
	if text, ok := strings.CutPrefix(err.Error(), "model URL: "); ok {
		return p.file.errorAt("llm.base_url", text, "write the URL of an OpenAI-compatible API")
	}
	return err
}

// newControlPlane makes the client of the control plane and finds the pool's id.
func (p composer) newControlPlane(ctx context.Context, e *egress.Egress) (*client.Client, string, error) {
	key, err := p.readKey()
	if err != nil {
		return nil, "", err
	}
	c, err := client.New(p.cfg.API.Endpoint, key, e.ControlPlane())
	if err != nil {
		return nil, "", p.file.errorAt("api.endpoint", err.Error(), "write https://forewarm.example.com")
	}
	if strings.HasPrefix(p.cfg.Pool, "pol_") {
		return c, p.cfg.Pool, nil
	}
	id, err := p.findPool(ctx, c)
	return c, id, err
}

// readKey returns the key that the configuration holds or names.
func (p composer) readKey() (string, error) {
	if p.cfg.API.KeyFile == "" {
		return p.cfg.API.Key.Reveal(), nil
	}
	data, err := os.ReadFile(p.cfg.API.KeyFile)
	if err != nil {
		return "", p.file.errorAt("api.key_file", err.Error(), "name a file that this user can read")
	}
	return strings.TrimSpace(string(data)), nil
}

// findPool asks for the id of a pool that is given by its name. While nobody
// answers, it asks again if the agent is to run on.
func (p composer) findPool(ctx context.Context, c *client.Client) (string, error) {
	for failures := 0; ; failures++ {
		pool, err := c.Pool(ctx, p.cfg.Pool)
		if err == nil {
			return pool.ID, nil
		}
		if answer, ok := errors.AsType[*client.Error](err); !p.patient || ok &&
			answer.Problem.Status < http.StatusInternalServerError {
			return "", fmt.Errorf("finding pool %q: %w", p.cfg.Pool, err)
		}
		wait := httpx.Backoff(failures, 250*time.Millisecond, 30*time.Second, nil)
		timer := time.NewTimer(wait)
		p.logger.Warn("waiting for the control plane, to find the pool", "pool", p.cfg.Pool, "again_in", wait, "error",
			err)
		select {
		case <-ctx.Done():
			timer.Stop()
			return "", ctx.Err()
		case <-timer.C:
		}
	}
}

// newForecaster makes the customer's own model, held to its budget over restarts.
func (p composer) newForecaster(e *egress.Egress) (*predict.Forecaster, error) {
	l := *p.cfg.LLM
	m, err := llm.NewClient(l.clientConfig(), e.Model())
	if err != nil {
		return nil, err
	}
	spent, err := loadBudget(p.statePath(budgetFile))
	if err != nil {
		return nil, err
	}
	bc := l.budgetConfig().WithDefaults()
	bc.Save = func(s llm.BudgetState) error { return saveBudget(p.statePath(budgetFile), s) }
	budget, err := llm.NewBudget(bc, spent, p.clock)
	if err != nil {
		return nil, err
	}
	return predict.NewForecaster(predict.ForecasterConfig{Name: l.Model, Timeout: l.Timeout.Std()}, m, budget,
		rand.Reader)
}

func (p composer) statePath(name string) string { return filepath.Join(p.cfg.StateDir, name) }

// openSources opens what the agent learns from.
func (p composer) openSources(out *composition) error {
	checkpoint, err := p.openCheckpoint()
	if err != nil {
		return err
	}
	salt, err := loadSalt(p.statePath(saltFile))
	if err != nil {
		return err
	}
	for i, s := range p.cfg.Sources {
		opened, err := p.openSource(s, checkpoint, salt)
		if err != nil {
			return p.file.errorAt(fmt.Sprintf("sources.%d.path", i), err.Error(), "name a file that can be read")
		}
		out.sources = append(out.sources, opened)
		out.closers = append(out.closers, opened.Close)
	}
	return nil
}

func (p composer) openSource(s sourceConfig, checkpoint *history.Checkpoint, salt []byte) (source.Source, error) {
	zone, err := time.LoadLocation(s.Zone) // empty means UTC
	if err != nil {
		return nil, err
	}
	open := func(path, name string, late bool) (source.Source, error) {
		if s.Kind == kindLog {
			return tail.New(tail.Config{Path: path, Name: name, Checkpoint: checkpoint, Clock: p.clock, FromEnd: !late})
		}
		return p.openJobs(jobs.Config{Path: path, Name: name, Format: jobs.Format(s.Format), Checkpoint: checkpoint,
			Clock:   p.clock,
			Options: history.Options{Salt: salt, Zone: zone, OwnUser: s.OwnUser}})
	}
	if !glob.IsPattern(s.Path) {
		return open(s.Path, s.displayName(), false)
	}
	return glob.New(glob.Config{Pattern: s.Path, Name: s.displayName(), Open: open, Checkpoint: checkpoint,
		Clock: p.clock})
}

// openJobs opens a history that tells of rows that cannot be read.
func (p composer) openJobs(c jobs.Config) (source.Source, error) {
	opened, err := jobs.New(c)
	if err != nil {
		return nil, err
	}
	return &watchful{Jobs: opened, log: p.logger}, nil
}

// close gives up everything, the last opened first.
func (c *composition) close() error {
	var errs []error
	for i := len(c.closers) - 1; i >= 0; i-- {
		errs = append(errs, c.closers[i]())
	}
	c.closers = nil
	return errors.Join(errs...)
}
