// Package worker does the work that the ledger's transactions cause: it sends
// due tasks to a queue, runs them against the provisioners, frees the tasks of
// workers that died, and sweeps providers for what was forgotten.
//
// Any number of workers may run against one ledger. None of them holds anything
// that must survive: the rows are the backlog, claims are leases, and every
// message may be delivered twice.
package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/worker/queue"
	"github.com/forewarm/forewarm/worker/reconcile"
	"github.com/forewarm/forewarm/worker/relay"
	"github.com/forewarm/forewarm/worker/tasks"
)

// Worker is one instance. Make one with New; drive it either with Run or, on a
// single goroutine, with Step.
type Worker struct {
	cfg     Config
	ledger  *verbs.Ledger
	queue   queue.Queue
	relay   *relay.Relay
	tasks   *tasks.Runner
	reaper  *reconcile.Reaper
	sweeper *reconcile.Sweeper
	// exclusive are the provisioners that serve one worker at a time.
	exclusive []provisioners.Provisioner
	// observers are the provisioners whose clusters are watched.
	observers []string

	mu     sync.Mutex
	swept  bool      // the sweeps' rows exist
	reaped time.Time // by Step
}

// New wires a worker of the ledger, the queue and the provisioners. It fails on
// a bad config. The queue stays the caller's to close, after Run has returned.
func New(l *verbs.Ledger, q queue.Queue, provs []provisioners.Provisioner, cfg Config) (*Worker, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the worker: %w", err)
	}
	byName, err := indexByName(provs)
	if err != nil {
		return nil, fmt.Errorf("configuring the worker: %w", err)
	}
	sweeper, err := reconcile.New(l, byName, cfg.sweepConfig())
	if err != nil {
		return nil, fmt.Errorf("configuring the worker: %w", err)
	}
	table := tasks.Work{Ledger: l, Provisioners: byName, Deployment: cfg.Deployment, ProviderDelay: cfg.ProviderDelay,
		JoinToken: cfg.JoinToken, Logger: cfg.Logger, Metrics: cfg.Metrics}.Table()
	table[ledger.TaskSweep] = sweeper.Handle
	var alone []provisioners.Provisioner
	if cfg.Holder != "" {
		alone = exclusiveOf(provs)
	}
	return &Worker{
		exclusive: alone, observers: observerNames(provs),
		cfg: cfg, ledger: l, queue: q, sweeper: sweeper,
		relay:  relay.New(l, q, cfg.relayConfig()),
		tasks:  tasks.New(l, table, cfg.tasksConfig()),
		reaper: reconcile.NewReaper(l, cfg.ReapEvery, cfg.Logger),
	}, nil
}

// observerNames are the provisioners that watch a cluster.
func observerNames(provs []provisioners.Provisioner) []string {
	var names []string
	for _, p := range provs {
		if _, watches := p.(provisioners.Observer); watches {
			names = append(names, p.Name())
		}
	}
	return names
}

func indexByName(provs []provisioners.Provisioner) (map[string]provisioners.Provisioner, error) {
	byName := make(map[string]provisioners.Provisioner, len(provs))
	for _, p := range provs {
		if _, twice := byName[p.Name()]; twice {
			return nil, fmt.Errorf("two provisioners are called %q", p.Name())
		}
		byName[p.Name()] = p
	}
	return byName, nil
}

// Run works until ctx ends. Then it sends nothing more, lets handlers finish for
// up to Config.Grace, ends their contexts, waits for them, and returns nil. What
// was cut off is done by another worker or after the restart. It returns an
// error only if the queue cannot serve, or if another worker has taken over a
// provisioner that serves one at a time.
func (w *Worker) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer w.letGo(ctx)
	defer stop(nil)
	var actors sync.WaitGroup
	defer actors.Wait()
	last, trusted := w.awaitTrusted(ctx, &actors)
	if !trusted {
		return nil
	}
	defer last()
	before, held := w.awaitHold(ctx)
	if !held {
		return nil
	}
	w.tellStrangers(ctx, before)
	actors.Go(func() {
		if err := w.keepHold(ctx); err != nil {
			stop(err)
		}
	})
	actors.Go(func() { w.keepNoted(ctx) })
	actors.Go(func() { w.relay.Run(ctx) })
	actors.Go(func() { w.reaper.Run(ctx) })
	actors.Go(func() { w.keepSweeping(ctx) })
	err := w.queue.Run(ctx, w.cfg.Concurrency, w.handleMessage)
	stop(nil)
	if held, ok := errors.AsType[*ledger.ProvisionerHeldError](context.Cause(ctx)); err == nil && ok {
		err = held
	}
	if err != nil {
		return fmt.Errorf("running the worker: %w", err)
	}
	return nil
}

// awaitTrusted waits until the database was compared with how far its journal had
// come, and keeps watching. It returns false when ctx ended before, and what is to
// be done when all work is.
func (w *Worker) awaitTrusted(ctx context.Context, actors *sync.WaitGroup) (last func(), ok bool) {
	if w.cfg.Watermark == "" {
		return func() {}, true
	}
	ready := make(chan struct{})
	mark := reconcile.NewWatermark(w.ledger, w.cfg.Watermark, w.cfg.Logger)
	actors.Go(func() { mark.Run(ctx, func() { close(ready) }) })
	select {
	case <-ready:
		return func() { mark.Finish(ctx) }, true
	case <-ctx.Done():
		return func() {}, false
	}
}

// handleMessage gives a handler that is at work some time beyond the end of ctx.
func (w *Worker) handleMessage(ctx context.Context, m queue.Message) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		grace := time.AfterFunc(w.cfg.Grace, cancel)
		context.AfterFunc(own, func() { grace.Stop() })
	})
	defer stop()
	w.tasks.Handle(own, m)
	w.relay.Ring() // what was done may have caused more
}

// keepSweeping has every provisioner swept, now and, should somebody have removed the
// rows, again; and looks after the journal's seals as often.
func (w *Worker) keepSweeping(ctx context.Context) {
	tick := time.NewTicker(w.cfg.EnsureEvery)
	defer tick.Stop()
	for {
		if err := w.ensureSweeps(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Logger.ErrorContext(ctx, "could not arrange for sweeps; trying again", "error", err)
		}
		if err := w.watchSeals(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Logger.ErrorContext(ctx,
				"the journal may not be what it was; if its database was restored from a backup, say so with "+
					"`forewarm recovery confirm --journal`", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// watchSeals notices that seals of the journal are gone that this worker has seen.
func (w *Worker) watchSeals(ctx context.Context) error {
	err := w.ledger.WatchSeals(ctx)
	var behind *ledger.JournalBehindError
	w.cfg.Metrics.SealsBehind(errors.As(err, &behind))
	return err
}

func (w *Worker) ensureSweeps(ctx context.Context) error {
	for _, name := range w.sweeper.Names() {
		if err := w.ledger.EnsureSweep(ctx, name); err != nil {
			return fmt.Errorf("arranging for sweeps of %s: %w", name, err)
		}
	}
	for _, name := range w.observers {
		if err := w.ledger.EnsureObserving(ctx, name); err != nil {
			return fmt.Errorf("arranging for observations of %s: %w", name, err)
		}
	}
	return nil
}

// stepper is a queue that a single goroutine can drive.
type stepper interface {
	Step(ctx context.Context, h queue.Handler) bool
}

// Step does, on the caller's goroutine, what is to do now: it frees lost tasks,
// sends what is due and handles every message that waits. It returns how many
// messages there were; zero means that nothing is to do before the ledger's next
// task is due. It needs the in-process queue and a config without heartbeat.
func (w *Worker) Step(ctx context.Context) (handled int, err error) {
	q, ok := w.queue.(stepper)
	if !ok {
		return 0, errors.New("stepping the worker: the queue cannot be stepped")
	}
	if err := w.ensureOnce(ctx); err != nil {
		return 0, fmt.Errorf("stepping the worker: %w", err)
	}
	if now := w.cfg.Clock.Now(); now.Sub(w.reaped) >= w.cfg.ReapEvery {
		if _, err := w.reaper.Step(ctx); err != nil {
			return 0, fmt.Errorf("stepping the worker: %w", err)
		}
		w.reaped = now
	}
	if _, err := w.relay.Step(ctx); err != nil {
		return 0, fmt.Errorf("stepping the worker: %w", err)
	}
	for q.Step(ctx, w.tasks.Handle) {
		handled++
	}
	return handled, nil
}

func (w *Worker) ensureOnce(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.swept {
		return nil
	}
	err := w.ensureSweeps(ctx)
	w.swept = err == nil
	return err
}
