package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/forewarm/forewarm/core/backtest"
)

// task is one run that is to be made.
type task struct {
	scenario *scenario
	setting  setting
	out      backtest.Outcome
	early    backtest.Outcome // of what comes before the scored part
	err      error
}

// runTasks makes all runs, on as many processors as Go may use. They share
// nothing, so the outcome does not depend on how many there are.
func runTasks(ctx context.Context, tasks []*task) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next, done atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) {
		workers.Go(func() {
			for n := int(next.Add(1)); n <= len(tasks) && ctx.Err() == nil; n = int(next.Add(1)) {
				t := tasks[n-1]
				if t.err = t.runTask(ctx); t.err != nil {
					cancel()
				}
				printProgress(int(done.Add(1)), len(tasks), t)
			}
		})
	}
	workers.Wait()
	for _, t := range tasks {
		if t.err != nil {
			return fmt.Errorf("replaying %s against %s: %w", t.scenario.name, t.setting.label, t.err)
		}
	}
	return ctx.Err()
}

func (t *task) runTask(ctx context.Context) error {
	opt := backtest.Options{
		Boot: t.scenario.boot, KeepAlive: t.setting.keepAlive, Capacity: t.scenario.capacity, Early: &t.early,
		Progress: func(int, int) error { return ctx.Err() },
	}
	if !t.scenario.bootsAlike() {
		opt.BootNext = t.scenario.drawBoots()
	}
	if t.setting.policies != nil {
		opt.Policy = t.setting.policies()
	}
	var err error
	if t.out, err = backtest.Run(t.scenario.trace, opt); err != nil {
		return err
	}
	if t.scenario.isFree() && t.out.Longest > t.scenario.boot {
		return fmt.Errorf("a job waited %d s, longer than a boot", t.out.Longest)
	}
	return nil
}

// printProgress shows how far the runs are: on one line of a terminal, and otherwise every
// tenth part.
func printProgress(done, of int, t *task) {
	info, err := os.Stderr.Stat()
	switch {
	case err == nil && info.Mode()&os.ModeCharDevice != 0:
		fmt.Fprintf(os.Stderr, "\r\033[K%d of %d runs, %s", done, of, t.scenario.name)
		if done == of {
			fmt.Fprint(os.Stderr, "\r\033[K")
		}
	case done*10/of != (done-1)*10/of:
		fmt.Fprintf(os.Stderr, "%d of %d runs\n", done, of)
	}
}
