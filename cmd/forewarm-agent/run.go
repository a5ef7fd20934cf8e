package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/agent"
	"github.com/forewarm/forewarm/agent/llm"
	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/internal/obs"
)

const defaultConfig = "forewarm-agent.yaml"

func runCommand(o outside) *cobra.Command {
	var path, level, format string
	var once, dry bool
	c := &cobra.Command{
		Use: "run", Short: "Watch, predict and, in auto mode, place reservations", Args: refuseArguments,
		Example: "  forewarm-agent run --dry-run     shows the plan it would send, and sends nothing\n  " +
			"forewarm-agent run --config forewarm-agent.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			logging, err := obs.ParseConfig(level, format)
			if err != nil {
				return &usageError{err}
			}
			cfg, f, err := loadConfig(path, o.getenv)
			if err != nil {
				return err
			}
			p := composer{cfg: cfg, file: f, clock: o.clock,
				logger: obs.NewLogger(cmd.ErrOrStderr(), logging).With("program", "forewarm-agent")}
			if dry {
				return dryRun(cmd, p)
			}
			p.patient = !once
			return runAgent(cmd.Context(), p, once)
		},
	}
	c.Flags().StringVar(&path, "config", defaultConfig, "the configuration file")
	c.Flags().BoolVar(&once, "once", false, "one step, then end")
	c.Flags().BoolVar(&dry, "dry-run", false, "print the plan that would be sent; send and store nothing")
	c.Flags().StringVar(&level, "log-level", "", "debug, info, warn or error")
	c.Flags().StringVar(&format, "log-format", "", "text or json")
	return c
}

// runAgent works until it is told to stop, or for one step.
func runAgent(ctx context.Context, p composer, once bool) (err error) {
	all, err := p.composeAgent(ctx)
	defer func() { err = errors.Join(err, all.close()) }()
	if err != nil {
		return err
	}
	p.logger.Info(greetingFor(p.cfg))
	if err := p.readAll(ctx, all); err != nil {
		return err
	}
	if once {
		_, err := all.stepOnce(ctx, p.logger)
		return err
	}
	return all.watchSources(ctx, p)
}

func greetingFor(c config) string {
	switch c.Mode {
	case agent.Auto:
		return fmt.Sprintf("mode auto: keeps up to %d GPUs of pool %s warm", c.placeConfig().MaxGPUs, c.Pool)
	default:
		return "mode observe: predicts and keeps score; sends nothing to the control plane"
	}
}

// watchSources runs the sources and the steps beside each other. The first that cannot
// go on ends all.
func (c *composition) watchSources(ctx context.Context, p composer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	for _, s := range c.sources {
		running.Go(func() {
			stop(source.Run(ctx, source.Runner{Source: s, Handle: c.agent.Handle, OnError: func(err error) {
				p.logger.Warn("a source cannot be read; it is tried again", "error", err)
			}}))
		})
	}
	c.runSteps(ctx, p)
	stop(nil)
	running.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// runSteps predicts and places at once and then whenever there is news, when looking
// again may say something else, and at least as often as configured. A step that
// fails leaves what was promised as it is.
func (c *composition) runSteps(ctx context.Context, p composer) {
	for ctx.Err() == nil {
		wait := p.cfg.Every.Std()
		rep, err := c.stepOnce(ctx, p.logger)
		if err != nil && ctx.Err() == nil {
			p.logger.Error("the step failed and is tried again", "error", err, "next", hintFor(err))
		}
		if next := rep.Prediction.Now.Next; err == nil && !next.IsZero() {
			wait = min(wait, max(time.Second, next.Sub(p.clock.Now())))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-c.agent.NewJobs():
		}
		timer.Stop()
	}
}

// hintFor says what to do about a failed step.
func hintFor(err error) string {
	var problem *client.Error
	switch {
	case !errors.As(err, &problem):
		return "check that api.endpoint is reachable"
	case problem.Problem.Status == 401:
		return "forewarm key create NAME --kind agent, and put it where the configuration says"
	case len(problem.Problem.Fixes) > 0:
		return problem.Problem.Fixes[0].Label
	default:
		return "forewarm-agent run --dry-run"
	}
}

// stepOnce takes a step and tells of it, and of what the model cost if it was asked.
func (c *composition) stepOnce(ctx context.Context, log *slog.Logger) (agent.Report, error) {
	before := c.spentToday()
	rep, err := c.agent.Step(ctx)
	if err == nil {
		log.Info(describeReport(rep))
	}
	if spent := c.spentToday(); spent != before {
		log.Info(describeSpent(spent))
	}
	return rep, err
}

// spentToday is what the customer's own model has cost today; nothing without a model.
func (c *composition) spentToday() llm.Caps {
	if c.model == nil {
		return llm.Caps{}
	}
	return c.model.Spent()
}

// dryRun prints the plan that would be sent. It works on a copy of what was
// learned and asks no model, so that nothing leaves and nothing stays.
func dryRun(cmd *cobra.Command, p composer) (err error) {
	dir, err := os.MkdirTemp("", "forewarm-agent-")
	if err != nil {
		return fmt.Errorf("making a folder for the dry run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if p.cfg.Mode == agent.Auto {
		if _, err := p.readKey(); err != nil {
			return err
		}
	}
	if err := copyState(p.cfg.StateDir, dir); err != nil {
		return err
	}
	p.home, p.cfg.StateDir, p.cfg.Mode, p.silent = p.cfg.StateDir, dir, agent.Observe, true
	all, err := p.composeAgent(cmd.Context())
	defer func() { err = errors.Join(err, all.close()) }()
	if err != nil {
		return err
	}
	if err := p.readAll(cmd.Context(), all); err != nil {
		return err
	}
	rep, err := all.agent.Step(cmd.Context())
	if err != nil {
		return err
	}
	boot, why := all.agent.Boot()
	p.logger.Info(fmt.Sprintf("assumes that a boot takes %s: %s", phrase.Length(boot), why))
	p.logger.Info(describeReport(rep))
	out := json.NewEncoder(cmd.OutOrStdout())
	out.SetIndent("", "  ")
	return out.Encode(rep.Plan)
}
