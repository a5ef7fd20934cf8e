package backtest

import (
	"context"
	"fmt"
	"math"

	core "github.com/forewarm/forewarm/core/backtest"
)

// passWeight is how long the model takes, beside a run without a policy.
const passWeight = 150

// runTrials lets the model read the history, and makes every trial, one after the other.
func (e *experiment) runTrials(ctx context.Context) error {
	total, done := passWeight, 0
	for _, t := range e.trials {
		total += t.weight
	}
	part := func(weight int) func(share float64) {
		before := done
		done += weight
		return func(share float64) {
			e.cfg.Progress((float64(before) + share*float64(weight)) / float64(total))
		}
	}
	var err error
	if e.plans, err = planWithModel(ctx, e.past.trace, e.cfg, e.waitingWorths(), part(passWeight)); err != nil {
		return err
	}
	for _, t := range e.trials {
		if err := e.runTrial(ctx, t, part(t.weight)); err != nil {
			return err
		}
	}
	e.cfg.Progress(1)
	return nil
}

func (e *experiment) runTrial(ctx context.Context, t *trial, progress func(share float64)) error {
	opt := core.Options{Boot: e.cfg.bootSeconds(), KeepAlive: t.keep, KeepReady: true,
		Progress: func(done, of int) error {
			progress(float64(done) / float64(of))
			return ctx.Err()
		}}
	if t.policies != nil {
		opt.Policy = func(i int) core.Policy { return &stoppable{Policy: t.policies(i), ctx: ctx} }
	}
	if t.waits != nil {
		opt.Waited = func(job int, wait int64) { t.waits[job] = wait }
	}
	var err error
	if t.out, err = core.Run(e.past.trace, opt); err != nil && ctx.Err() == nil {
		return fmt.Errorf("replaying %s: %w", t.policy, err)
	}
	return ctx.Err()
}

// stoppable asks for nothing more once it is told to stop: between two jobs of a
// quiet year lie half a million questions, and nobody waits for them.
type stoppable struct {
	core.Policy
	ctx   context.Context
	asked int
	ended bool
}

// patience is how many questions are answered between two looks at the context.
const patience = 1024

// Next is the policy's, or never.
func (s *stoppable) Next() int64 {
	if s.ended {
		return math.MaxInt64
	}
	return s.Policy.Next()
}

// Target is the policy's.
func (s *stoppable) Target(now int64) int {
	if s.asked++; s.asked%patience == 0 {
		s.ended = s.ctx.Err() != nil
	}
	return s.Policy.Target(now)
}

// bestTrial returns the cheapest trial of a policy at what the user says that waiting
// is worth: the first of several that cost the same.
func (e *experiment) bestTrial(policy string) *trial {
	var best *trial
	for _, t := range e.trials {
		if t.policy == policy && (best == nil || t.out.Cost(e.cfg.WaitWorth) < best.out.Cost(e.cfg.WaitWorth)) {
			best = t
		}
	}
	return best
}

// shownTrial returns the trial of a policy that stands in the table. Keep-alive has
// none by itself: its best is shown.
func (e *experiment) shownTrial(policy string) *trial {
	for _, t := range e.trials {
		if t.policy == policy && t.main {
			return t
		}
	}
	return e.bestTrial(policy)
}
