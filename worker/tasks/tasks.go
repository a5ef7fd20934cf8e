// Package tasks runs task rows: it claims a row, calls the handler of its kind,
// keeps the claim alive meanwhile, and records the result.
//
// A message may come twice, late, or to two workers at once; whatever a handler
// reports is accepted only under the fence of the latest claim. A handler never
// decides: it asks the provider, reports the answer to the ledger in the
// ledger's own terms, and the state machines and the planner choose what
// happens next.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/worker/queue"
)

// Handler does one claimed task. It ends the task itself, with the ledger's verb
// for what it found, and returns nil; or it returns an error, and the task is
// tried again later.
type Handler func(ctx context.Context, c Claim) error

// Claim is a task that this process holds.
type Claim struct {
	Task  ledger.Task
	Guard ledger.Guard
	// Now is the database's time when the task was claimed: the only time that
	// may be compared with times of the ledger.
	Now time.Time
}

// Config tunes a Runner. The zero value is made whole by WithDefaults.
type Config struct {
	// Lease is how long a claim lasts without a heartbeat, and so what the death
	// of a worker costs. Default 10 s.
	Lease time.Duration
	// Heartbeat is how often a claim is extended while its handler works; at most
	// a third of the lease is sensible. Zero: never, and no goroutine, for the
	// single-threaded simulator.
	Heartbeat time.Duration
	// RetryBase and RetryMax bound the back-off after a failure: a random time
	// up to base × 2^(failures in a row before). Defaults 1 s and 2 min.
	RetryBase, RetryMax time.Duration
	// Rand is the back-off's source of chance; the Runner takes it over. Nil: the
	// whole bound is waited each time.
	Rand *rand.Rand
	// Clock measures how long handlers take. Nil means the machine's clock.
	Clock clock.Clock
	// Logger gets one line for each failure. Nil means slog.Default().
	Logger *slog.Logger
	// Metrics counts attempts; nil counts nothing.
	Metrics *obs.Metrics
}

// WithDefaults fills what is zero, except Heartbeat and Rand.
func (c Config) WithDefaults() Config {
	if c.Lease == 0 {
		c.Lease = 10 * time.Second
	}
	if c.RetryBase == 0 {
		c.RetryBase = time.Second
	}
	if c.RetryMax == 0 {
		c.RetryMax = 2 * time.Minute
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Runner runs tasks by a table of handlers. It is safe for concurrent use. Make
// one with New.
type Runner struct {
	ledger   *verbs.Ledger
	handlers map[string]Handler
	cfg      Config
	patience patience
}

// New returns a runner. The table is by kind of task and must not be changed
// afterwards.
func New(l *verbs.Ledger, handlers map[string]Handler, cfg Config) *Runner {
	cfg = cfg.WithDefaults()
	return &Runner{
		ledger: l, handlers: handlers, cfg: cfg,
		patience: patience{base: cfg.RetryBase, most: cfg.RetryMax, chance: cfg.Rand, failures: map[string]int{}},
	}
}

// Outcomes of an attempt, as counted.
const (
	outcomeDone    = "done"
	outcomeRetried = "retried"
	outcomeFenced  = "fenced"
	outcomeLost    = "lost" // could not even be handed back: its lease runs out
)

// Handle implements queue.Handler: it does the task that m points at, or drops m
// when there is nothing to do.
func (r *Runner) Handle(ctx context.Context, m queue.Message) {
	ctx = obs.WithAttrs(ctx, slog.String("task_id", m.TaskID), slog.String("kind", m.Kind))
	handler, known := r.handlers[m.Kind]
	if !known {
		// A newer version made it. The row stays ready for a worker that knows it.
		r.cfg.Logger.WarnContext(ctx, "left a task of an unknown kind alone")
		return
	}
	task, err := r.ledger.ClaimTask(ctx, m.TaskID, m.Attempt, r.cfg.Lease)
	if errors.Is(err, ledger.ErrFenced) || errors.Is(err, ledger.ErrNotFound) {
		return // a duplicate of a message, or one of a row that is over
	}
	if err != nil {
		r.cfg.Logger.WarnContext(ctx, "could not claim a task; it is sent again", "error", err)
		return
	}
	r.runTask(obs.WithAttrs(ctx, slog.String("subject", task.Subject)), task, handler)
}

func (r *Runner) runTask(ctx context.Context, task ledger.Task, handler Handler) {
	c := Claim{
		Task: task, Guard: ledger.Guard{TaskID: task.ID, Fence: task.Fence},
		Now: task.LeaseUntil.Add(-r.cfg.Lease),
	}
	began := r.cfg.Clock.Now()
	err := r.runHeld(ctx, c, handler)
	outcome := r.reportFailure(ctx, c, err)
	r.cfg.Metrics.Task(task.Kind, outcome, r.cfg.Clock.Now().Sub(began))
}

// runHeld runs the handler while the claim is kept alive.
func (r *Runner) runHeld(ctx context.Context, c Claim, handler Handler) (err error) {
	ctx, stop := r.startHeartbeat(ctx, c.Guard)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if err := handler(ctx, c); err != nil {
		return errors.Join(err, lossCause(ctx))
	}
	return nil
}

// lossCause is why the claim was lost, nil if it was not.
func lossCause(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ledger.ErrFenced) {
		return err
	}
	return nil
}

// lastWords is how long handing a task back may take when the process is ending.
const lastWords = 5 * time.Second

// reportFailure hands a failed task back and returns what became of the attempt.
func (r *Runner) reportFailure(ctx context.Context, c Claim, failure error) string {
	switch {
	case failure == nil:
		r.patience.forgetFailures(c.Task)
		if err := r.ledger.ReportWorks(ctx, c.Task); err != nil {
			r.cfg.Logger.WarnContext(ctx, "could not report that a task works again", "error", err)
		}
		return outcomeDone
	case errors.Is(failure, ledger.ErrFenced):
		r.cfg.Logger.InfoContext(ctx, "another worker holds the task now", "error", failure)
		return outcomeFenced
	}
	after := r.patience.delayAfter(c.Task, failure)
	if ctx.Err() != nil {
		after = 0 // the worker is ending, which is not the task's fault
	}
	r.cfg.Logger.WarnContext(ctx, "a task failed and is tried again",
		"attempt", c.Task.Attempt, "again_in", after, "error", failure)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	err := r.ledger.RetryTask(ctx, c.Guard, after, summarizeError(failure))
	switch {
	case errors.Is(err, ledger.ErrFenced):
		return outcomeFenced
	case err != nil:
		r.cfg.Logger.WarnContext(ctx, "could not hand a task back; its lease runs out", "error", err)
		return outcomeLost
	}
	return outcomeRetried
}

// summaryLimit keeps stacks and providers' pages out of rows.
const summaryLimit = 500

// summarizeError cuts a failure to what a row may hold. The text may be a provider's:
// PostgreSQL takes neither broken UTF-8 nor NUL.
func summarizeError(err error) string {
	text := obs.ScrubText(strings.ReplaceAll(err.Error(), "\x00", ""))
	return strings.ToValidUTF8(text[:min(len(text), summaryLimit)], "")
}
