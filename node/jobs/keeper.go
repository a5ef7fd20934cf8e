// Package jobs runs attempts of jobs on a node, as the control plane orders them.
//
// Each attempt has a folder, in which its order is before anything runs, and a runner: the daemon's
// own program, in a session of its own. The runner starts the command, keeps what it writes, ends it
// when its time is over, and writes down how it ended. It outlives the daemon, which only watches:
// it takes output away, and reports. An attempt that has a folder is never started again. As long as
// the daemon is there, a runner may run another attempt after that, and never two at a time.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/node/hold"
)

const (
	// lookEvery is how often an attempt that runs is looked at, unless the configuration says otherwise.
	lookEvery = 200 * time.Millisecond
	// sendEvery is for at most 8 MiB of output in a second.
	sendEvery = time.Second / 16
	// giveUp is for how long it is tried to send the output of an attempt that has ended, with a
	// server that can be reached, before it is reported without.
	giveUp = 30 * time.Second
	// mostReports is how many attempts a heartbeat tells.
	mostReports = 256
)

// Config is what a keeper works with.
type Config struct {
	Dir    string       // of the attempts, in the daemon's state folder
	Runner []string     // the command line of a program that calls Run
	Holds  *hold.Keeper // nil: no jobs are taken
	// Refusal says why none are.
	Refusal string
	// Store sends output to the control plane.
	Store func(ctx context.Context, jobID string, part contract.JobOutputPart) (contract.JobOutputStored, error)
	Hurry func() // there is something to report at once
	// LookEvery is how often an attempt that runs is looked at; zero: five times a second. The end of one
	// that this keeper has started is seen at once.
	LookEvery time.Duration
	// SendEvery is between two parts of output, of mostPart at most; zero: sixteen in a second. Who follows a
	// job reads what the control plane has, of which it keeps the end: what came faster would be gone.
	SendEvery time.Duration
	Log       *slog.Logger
}

// Keeper keeps the attempts of jobs on a node. It is safe for concurrent use.
type Keeper struct {
	Config
	ctx    context.Context //nolint:containedctx // it ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	spares spares
	runners

	mu       sync.Mutex
	attempts map[contract.JobKey]*attempt
	toldAt   time.Time // the server was told last
}

// Open returns a keeper of what is in the folder, which earlier daemons may have begun. It returns
// once what they were starting has started, so that holds can be ended afterwards.
func Open(ctx context.Context, cfg Config) (*Keeper, error) {
	var err error
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("finding the folder of jobs: %w", err)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of jobs: %w", err)
	}
	cfg.LookEvery, cfg.SendEvery = cmp.Or(cfg.LookEvery, lookEvery), cmp.Or(cfg.SendEvery, sendEvery)
	k := &Keeper{Config: cfg, attempts: map[contract.JobKey]*attempt{}, spares: make(spares, mostSpares),
		runners: runners{command: cfg.Runner}}
	k.ctx, k.cancel = context.WithCancel(ctx)
	if err := k.load(); err != nil {
		k.cancel()
		return nil, err
	}
	return k, nil
}

// Close ends what the keeper does. Runners go on.
func (k *Keeper) Close() {
	k.cancel()
	k.work.Wait()
	k.runners.close()
}

// load finds the attempts of earlier daemons, and removes what they did not finish to make or remove.
func (k *Keeper) load() error {
	entries, err := os.ReadDir(k.Dir)
	if err != nil {
		return fmt.Errorf("reading the folder of jobs: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinished) {
			if err := os.RemoveAll(filepath.Join(k.Dir, e.Name())); err != nil {
				return fmt.Errorf("removing what is left of a job: %w", err)
			}
			continue
		}
		key, ok := keyOf(e.Name())
		if !ok {
			k.Log.Warn("the folder of jobs has something that is none", "name", e.Name())
			continue
		}
		a := k.newAttempt(key)
		what, err := a.folder.readOrder()
		if err != nil {
			k.Log.Error("the order of a job cannot be read", "job", key.JobID, "attempt", key.Attempt, "error", err)
		}
		a.accept(what)
		k.attempts[key] = a
		if err := awaitRelease(a.folder.file(beginLock)); err != nil {
			k.Log.Error("a job of an earlier daemon has not begun", "job", key.JobID, "attempt", key.Attempt, "error", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.attempts { // once all are known, as each looks at the others
		k.work.Go(func() { k.follow(a) })
	}
	return nil
}

// Heed starts what the server orders, unless it is known, and forgets what it names, once that has
// ended. It returns at once. It is called when the server has answered a report, at a time.
func (k *Keeper) Heed(orders []contract.JobOrder, forget []contract.JobKey, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range forget {
		if a := k.attempts[key]; a != nil {
			a.forgotten = true
		}
	}
	passed := max(0, min(now.Sub(k.toldAt), giveUp/3)) // when the server was away, little of it was spent trying
	k.toldAt = now
	for _, a := range k.attempts {
		if a.result != nil && !a.sent {
			a.tried += passed
		}
		a.ring()
	}
	for _, o := range orders {
		if k.ctx.Err() != nil || k.attempts[o.JobKey] != nil {
			continue
		}
		if !hold.IsName(o.JobID) || o.Attempt < 1 {
			k.Log.Error("a job is ordered that has no proper name", "job", o.JobID, "attempt", o.Attempt)
			continue
		}
		a := k.newAttempt(o.JobKey)
		what := accepted{Order: o, BootID: bootID()}
		a.accept(what)
		a.ran = true
		k.attempts[o.JobKey] = a
		k.work.Go(func() { k.start(a, what) })
	}
}

// start begins an attempt, and follows it.
func (k *Keeper) start(a *attempt, what accepted) {
	o := what.Order
	log := k.Log.With("job", o.JobID, "attempt", o.Attempt, "allocation", o.AllocationID)
	place, began, err := k.enter(o)
	if err != nil {
		log.Warn("a job is not started", "error", err)
		never := result{Code: contract.JobNotStarted, Reason: clip(err.Error())}
		if err := k.spares.make(a.folder, what, &never); err != nil {
			k.abandon(a, err)
			return
		}
		k.follow(a)
		return
	}
	what.Place, what.Containers = place, k.Holds.Runtime()
	if err := k.spares.make(a.folder, what, nil); err != nil {
		began()
		k.abandon(a, err)
		return
	}
	if runs, err := k.runAttempt(a); err != nil {
		log.Error("a job is not started", "error", err)
		k.keepResult(a, result{Code: contract.JobNotStarted, Reason: clip(err.Error())})
	} else {
		log.Info("a job begins")
		if err := runs.awaitBegin(); err != nil {
			log.Error("a job has not begun", "error", err)
		}
	}
	began()
	k.Hurry()
	k.follow(a)
}

// enter opens the place of an attempt. Until began is called, an end of the hold waits.
func (k *Keeper) enter(o contract.JobOrder) (place hold.Place, began func(), err error) {
	if k.Holds == nil {
		return place, nil, errors.New(k.Refusal)
	}
	h := hold.Hold{AllocationID: o.AllocationID, GPUUUIDs: o.GPUUUIDs, GPUIndices: o.GPUIndices,
		Environment: o.HoldEnvironment, Containers: o.Image != "",
		Lease: time.Duration(o.LeaseSeconds) * time.Second}
	if o.Shares != nil {
		h.Shares = hold.Shares{Held: o.Shares.Held, PerGPU: o.Shares.PerGPU}
	}
	if place, err = k.Holds.Open(h); err != nil {
		return place, nil, err
	}
	began, err = k.Holds.Begin(o.AllocationID)
	return place, began, err
}

// abandon gives up an attempt of which nothing could be written down, as where the disk is full: it is known in memory
// alone that it ended before it began, and a daemon that begins meanwhile finds it anew, with the server. It is lost,
// as by no fault of its own, so that it is tried on another node.
func (k *Keeper) abandon(a *attempt, cause error) {
	k.Log.Error("a job cannot be written down, and is not started", "job", a.key.JobID, "attempt", a.key.Attempt,
		"error", cause)
	k.mu.Lock()
	a.sent = true // it wrote nothing
	a.result = &result{Code: contract.JobLost, Reason: clip("its node cannot write down what it runs: " + cause.Error())}
	k.mu.Unlock()
	k.Hurry()
	k.follow(a)
}

// keepResult writes down how an attempt ended that has no runner any more. Where that cannot be
// written, the next daemon finds the same.
func (k *Keeper) keepResult(a *attempt, r result) {
	r.Of = a.folder.name()
	if err := a.folder.write(resultFile, r); err != nil {
		k.Log.Error("how a job ended cannot be written down", "job", a.key.JobID, "attempt", a.key.Attempt, "error", err)
	}
	k.setResult(a, r)
}

func (k *Keeper) setResult(a *attempt, r result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a.result = &r
}
