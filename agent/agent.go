// Package agent is the customer's side: it learns from job history, predicts
// need, and asks the control plane to have GPUs warm ahead of it.
//
// It runs in the customer's environment with the customer's rights and the
// customer's own model key, if there is one. What it may tell the control plane
// is a contract.AgentPlan, and contract.AgentForecasts with their outcomes:
// identifiers, numbers, enums, hashes and times. The statistics work alone; a
// silent, wrong or hostile model can do no more than its bounded weight allows.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/outbox"
	"github.com/forewarm/forewarm/agent/place"
	"github.com/forewarm/forewarm/agent/predict"
	"github.com/forewarm/forewarm/agent/redact"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/core/forecast"
	"github.com/forewarm/forewarm/internal/clock"
)

// Mode says how far the agent may go.
type Mode string

// The modes.
const (
	Observe Mode = "observe" // predicts and keeps score; sends nothing
	Auto    Mode = "auto"    // places what it predicts, within the caps of its key
)

// ControlPlane is all that the agent asks of the other side. Each may be sent
// again: what is the same changes nothing.
type ControlPlane interface {
	SetDemand(ctx context.Context, plan contract.AgentPlan) (contract.PlanOutcome, error)
	// What it forecasts, before the windows begin, and how that came out.
	outbox.Receiver
}

// Config is an agent without its sources.
type Config struct {
	Tenant  string // whose rows of the history count; empty: all, as one
	PoolID  string
	Mode    Mode
	Place   place.Config
	Clock   clock.Clock
	Logger  *slog.Logger
	Predict *predict.Predictor
	Scrub   *redact.Redactor
	Control ControlPlane      // may be nil in mode observe
	Pools   PoolReader        // tells what is free in an observed pool; nil: every GPU that is held is promised
	Placed  ReservationReader // of what its plans led to; nil: nobody looks whether another agent has its key
	Ledger  *predict.Ledger   // of forecasts; nil keeps none
	Sources []string          // names of the histories that are learned from; without one, any state is taken over
	State   string            // file of what was learned; empty keeps it in memory
	Secret  []byte            // of the names under which forecasts are sent; without one, none is
}

// Agent learns and places. It is safe for concurrent use by its sources and its
// loop.
type Agent struct {
	cfg Config

	stepping  sync.Mutex // one Step at a time; taken before mu
	handedOut bool       // the pool's GPUs are handed out one by one: whose node has room does not matter; of Step
	// bootsUntil is when the pool is asked anew how long its boots take; of Step.
	bootsUntil time.Time
	rivals     rivals // of Step

	mu     sync.Mutex                // never held while a model or the control plane is waited for
	seen   map[string]jobItem        // jobs counted lately and those that run, by id
	newest time.Time                 // of the jobs seen
	lines  []redact.Scrubbed         // the newest, as many as a question can hold
	logs   map[string]*redact.Stream // by the source of the lines
	binary map[string]bool           // sources of lines with NUL bytes
	asked  time.Time                 // when the model was given lines last
	// pausedUntil is when it may be asked again, if it or its budget has said that.
	pausedUntil time.Time
	boots       *boots          // as the pool last told; nil: it has not
	bootsNew    bool            // and they are not saved yet
	sources     []string        // that it has learned from, those of earlier runs too
	others      map[string]bool // tenants of rows that do not count, some of them
	late        int             // rows older than what was counted already
	unsent      outbox.Outbox
	news        chan struct{}
}

// New returns an agent that has learned what its state file holds.
func New(cfg Config) (*Agent, error) {
	if cfg.Mode != Observe && cfg.Mode != Auto {
		return nil, fmt.Errorf("mode: %q is neither observe nor auto", cfg.Mode)
	}
	if cfg.Mode == Auto && (cfg.Control == nil || cfg.PoolID == "") {
		return nil, errors.New("mode auto needs a control plane and a pool")
	}
	cfg.Place = cfg.Place.WithDefaults()
	if err := cfg.Place.Validate(); err != nil {
		return nil, fmt.Errorf("checking the placing configuration: %w", err)
	}
	a := &Agent{cfg: cfg, seen: map[string]jobItem{}, sources: cfg.Sources, logs: map[string]*redact.Stream{},
		others: map[string]bool{}, binary: map[string]bool{}, news: make(chan struct{}, 1)}
	return a, a.loadState()
}

// Handle takes what a source found. When it returns nil, what was learned is
// durable, and the source may move on. After an error the same items may come
// again. Jobs of one batch may be in any order: a history is often sorted by the
// end of its jobs, and statistics want their beginnings.
func (a *Agent) Handle(_ context.Context, items []source.Item) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.cfg.Clock.Now()
	jobs := jobRecords(items)
	for _, r := range jobs {
		a.learnJob(now, *r)
	}
	a.noteLines(items)
	a.forgetJobs()
	if err := a.saveState(); err != nil {
		return err
	}
	if len(jobs) > 0 {
		select {
		case a.news <- struct{}{}:
		default: // nobody has looked since the last
		}
	}
	return nil
}

// NewJobs receives a value once jobs were read since the last receive: a reason
// for a Step at once.
func (a *Agent) NewJobs() <-chan struct{} { return a.news }

// jobRecords are the jobs among the items, in the order they were submitted.
func jobRecords(items []source.Item) []*history.Record {
	var found []*history.Record
	for _, item := range items {
		if item.Record != nil {
			found = append(found, item.Record)
		}
	}
	slices.SortStableFunc(found, func(x, y *history.Record) int { return x.Submitted.Compare(y.Submitted) })
	return found
}

// learnJob counts a job's beginning once and its end once. A row that cannot count is
// no fault of the agent's: a history may be out of order or from a wrong clock.
func (a *Agent) learnJob(now time.Time, r history.Record) {
	if a.cfg.Tenant != "" && r.Tenant != a.cfg.Tenant {
		a.noteTenant(r.Tenant)
		return
	}
	j, known := a.seen[r.ID]
	if !known {
		as := forecast.Traits{Class: r.Class, Array: r.Array}
		if err := a.cfg.Predict.Observe(now, a.cfg.Tenant, r.Submitted, r.GPUs, as); err != nil {
			a.late++
			a.cfg.Logger.Debug("a row of the history does not count", "error", err)
			return
		}
		j = jobItem{Submitted: r.Submitted, GPUs: r.GPUs, As: as}
		if r.Submitted.After(a.newest) {
			a.newest = r.Submitted
		}
	}
	if at, over := endOf(r, known, now); over && !j.Over {
		as := j.As
		as.Failed = r.Failed()
		a.cfg.Predict.Finish(a.cfg.Tenant, j.Submitted, r.Started, j.GPUs, at, as)
		j.Over = true
	}
	a.seen[r.ID] = j
}

// jobItem is what is remembered of a job.
type jobItem struct {
	Submitted time.Time `json:"submitted"`
	GPUs      int       `json:"gpus"`
	Over      bool      `json:"over,omitempty"` // its end was told

	As forecast.Traits `json:"as,omitzero"` // what is known of it beside
}

// endOf says when a job ended, if it did. Of one whose source never tells, only
// the arrival counts.
func endOf(r history.Record, known bool, now time.Time) (time.Time, bool) {
	switch {
	case !r.Ended.IsZero():
		return r.Ended, true
	case r.State == history.Pending || r.State == history.Running:
		return time.Time{}, false
	case r.Duration > 0 && !r.Started.IsZero():
		return r.Started.Add(r.Duration), true
	case r.Duration > 0:
		return r.Submitted.Add(r.Duration), true
	case known: // it ran when it was seen before, and runs no more
		return now, true
	default:
		return r.Submitted, true
	}
}

// Report tells what one step did.
type Report struct {
	Prediction predict.Prediction
	Choices    []place.Choice // by statistics
	Why        string         // what is kept warm, with what evidence adds, or why nothing is
	Plan       contract.AgentPlan
	Outcome    contract.PlanOutcome
	Sent       bool
	Closed     int             // forecasts that were scored
	Scores     predict.Summary // of all forecasts so far; the zero value without a ledger
	Late       int             // rows that came too late to count, since the start
	Unsent     int             // forecasts and outcomes that the control plane does not have yet
}

// Step predicts, scores what is over and, in mode auto, sends the whole plan. A
// plan that was sent before is sent again: the control plane keeps what is the
// same. An error leaves what was promised as it is. While a model or the control
// plane takes its time, sources are heard as ever.
func (a *Agent) Step(ctx context.Context) (Report, error) {
	a.stepping.Lock()
	defer a.stepping.Unlock()
	question, err := a.nextQuestion()
	if err != nil {
		return Report{}, err
	}
	rep, err := a.decidePlan(question.Ask(ctx), a.readRoom(ctx))
	if err != nil || a.cfg.Mode != Auto {
		return rep, err
	}
	if rep.Outcome, err = a.cfg.Control.SetDemand(ctx, rep.Plan); err != nil {
		a.rivals.placed = nil // it may have been carried out
		return rep, fmt.Errorf("sending the plan: %w", err)
	}
	rep.Sent = true
	a.watchRivals(ctx, rep.Outcome)
	rep.Unsent, err = a.sendPlan(ctx)
	return rep, err
}

// nextQuestion is what to ask a model now; nil for nothing.
func (a *Agent) nextQuestion() (*predict.Question, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.cfg.Clock.Now()
	if err := a.cfg.Predict.Advance(now); err != nil {
		return nil, fmt.Errorf("advancing to now: %w", err)
	}
	return a.cfg.Predict.Question(now, a.cfg.Tenant, a.gatheredLines(now)), nil
}

// decidePlan makes the plan of now, which may be later than when the model was asked,
// and keeps score.
func (a *Agent) decidePlan(answer predict.Answer, room contract.PoolRoom) (Report, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.cfg.Clock.Now()
	if err := a.cfg.Predict.Advance(now); err != nil {
		return Report{}, fmt.Errorf("advancing to now: %w", err)
	}
	rep := Report{Prediction: a.cfg.Predict.Predict(now, a.cfg.Tenant, answer), Late: a.late}
	a.keepUnanswered(now, answer)
	a.tellNote(rep.Prediction.Note, now)
	a.tellEvidence(rep.Prediction)
	kept := a.choosePlaces(&rep, room)
	rep.Plan = contract.AgentPlan{PoolID: a.cfg.PoolID, Windows: fromNow(place.Windows(kept), now)}
	var err error
	if rep.Closed, err = a.scoreForecasts(now, rep); err != nil {
		return rep, err
	}
	if a.cfg.Ledger != nil {
		rep.Scores = a.cfg.Ledger.Summary()
	}
	return rep, a.saveOutbox()
}

// sendPlan sends forecasts and outcomes that were not sent yet, and returns how many
// are left. That it fails is no fault of the step: the plan stands, and they are
// sent again. Only a Step changes what is unsent, so what was sent meanwhile can
// take its place.
func (a *Agent) sendPlan(ctx context.Context) (unsent int, err error) {
	a.mu.Lock()
	rest, now := a.unsent.Clone(), a.cfg.Clock.Now()
	a.mu.Unlock()
	before := rest.Len()
	if before == 0 {
		return 0, nil
	}
	dropped, err := rest.Send(ctx, now, a.cfg.Control)
	if err != nil {
		a.cfg.Logger.Warn("forecasts were not sent; they are tried again", "unsent", rest.Len(), "error", err)
	}
	if dropped > 0 {
		a.cfg.Logger.Warn("forecasts were dropped that came too late or were refused", "dropped", dropped)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsent = rest
	if rest.Len() == before {
		return before, nil
	}
	return rest.Len(), a.saveState()
}

// forecastRows turns forecasts into what may leave; false when nothing is to.
func (a *Agent) forecastRows() (predict.Rows, bool) {
	return predict.Rows{PoolID: a.cfg.PoolID, Secret: a.cfg.Secret}, a.cfg.Mode == Auto && len(a.cfg.Secret) > 0
}

// fromNow asks for what is left of windows that have begun: nothing can be
// booked in the past. What was placed at a window's start is kept, since it
// covers what is left.
func fromNow(windows []contract.AgentWindow, now time.Time) []contract.AgentWindow {
	for i, w := range windows {
		if w.Start.Before(now) {
			windows[i].Start = now.Truncate(time.Second)
		}
	}
	return windows
}

// ledgerEntries are the forecasts to be judged later: of now, if GPUs are held because
// of it, and of windows to come that evidence speaks of.
func (a *Agent) ledgerEntries(now time.Time, rep Report) []predict.Entry {
	var entries []predict.Entry
	if rep.Prediction.Now.Held.Levels > 0 && !a.cfg.Ledger.Watches(a.cfg.Tenant) {
		entries = append(entries, rep.Prediction.NowEntry())
	}
	for i, w := range rep.Prediction.Windows {
		e := rep.Prediction.Entry(i)
		if !w.Start.Before(now) && e.Statement != nil && !a.cfg.Ledger.HasOpenForecast(e) {
			entries = append(entries, e)
		}
	}
	return entries
}

// outcomeOf is what came of a forecast.
func (a *Agent) outcomeOf(e predict.Entry) int {
	if e.Base != nil {
		return a.cfg.Predict.DemandRise(e.Tenant, e.Start, e.End, *e.Base)
	}
	return a.cfg.Predict.Arrived(e.Tenant, e.Start)
}

// scoreForecasts enters forecasts, closes the ones that are over, and lets the sources be
// judged by them.
func (a *Agent) scoreForecasts(now time.Time, rep Report) (int, error) {
	if a.cfg.Ledger == nil {
		return 0, nil
	}
	entries := a.ledgerEntries(now, rep)
	if err := a.cfg.Ledger.Append(entries...); err != nil {
		return 0, fmt.Errorf("entering forecasts: %w", err)
	}
	closed, err := a.cfg.Ledger.Close(now, a.outcomeOf)
	if err != nil {
		return 0, fmt.Errorf("scoring forecasts: %w", err)
	}
	for _, o := range closed {
		a.cfg.Predict.Learn(o.Entry, o.GPUs)
	}
	if rows, ok := a.forecastRows(); ok {
		for _, e := range entries {
			a.unsent.Forecast(rows.Forecast(e))
		}
		for _, o := range closed {
			a.unsent.Outcome(rows.Outcome(o))
		}
	}
	return len(closed), nil
}

// saveOutbox saves what a step has learned of evidence: that a record is open, or what
// became of one, must not be forgotten, or the source would be judged by half. So
// it is with what is to be told.
func (a *Agent) saveOutbox() error {
	if !a.cfg.Predict.UsesEvidence() && a.unsent.Len() == 0 && !a.bootsNew {
		return nil
	}
	a.bootsNew = false
	return a.saveState()
}
