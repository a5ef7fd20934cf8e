package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/agent/backtest"
	"github.com/forewarm/forewarm/agent/backtest/show"
	"github.com/forewarm/forewarm/agent/history"
	"github.com/forewarm/forewarm/agent/source/glob"
	"github.com/forewarm/forewarm/agent/source/tail"
	"github.com/forewarm/forewarm/internal/statefile"
)

// backtestFlags are what the command line says.
type backtestFlags struct {
	config, history, format, zone, tenant, ownUser, html, output string
	days                                                         int
	boot                                                         time.Duration
	waitWorth, waitPrice, gpuPrice                               float64
	frontier                                                     bool
}

func backtestCommand(o outside) *cobra.Command {
	var f backtestFlags
	c := &cobra.Command{
		Use:   "backtest --history FILE",
		Short: "Show what Forewarm and simpler rules would have done for your own history", Args: refuseArguments,
		Long: "Replays your own job history under simple rules and under Forewarm's statistics, and says which to " +
			"use. Every decision is made from its past alone.\n" +
			"It needs no server, key or network, and reads no configuration except one that --config names.",
		Example: "  " + sacctLine +
			"\n  forewarm-agent backtest --history jobs.sacct --days 90 --wait-price 60 --gpu-price 2.10 --html " +
			"backtest.html\n" +
			"  kubectl get pods -A -o json > pods.json && forewarm-agent backtest --history pods.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.completeFlags(cmd, o.getenv); err != nil {
				return err
			}
			return f.runBacktest(cmd, o.clock.Now())
		},
	}
	f.bindFlags(c)
	return c
}

func (f *backtestFlags) bindFlags(c *cobra.Command) {
	s := c.Flags()
	s.StringVar(&f.history, "history", "",
		"the job history: text of sacct, CSV, JSONL, or JSON of kubectl; may be gzipped")
	s.StringVar(&f.format, "format", "auto", "auto, sacct, csv, jsonl or kubernetes")
	s.StringVar(&f.zone, "zone", "UTC", "time zone of sacct's times, of opening hours and of weekdays")
	s.StringVar(&f.tenant, "tenant", "", "only this group, account or namespace")
	s.StringVar(&f.ownUser, "own-user", history.DefaultOwnUser,
		"user as whom Forewarm submits: its own jobs are no demand")
	s.IntVar(&f.days, "days", 0, "only the last days of the history (default all)")
	f.boot = 5 * time.Minute
	s.Var((*span)(&f.boot), "boot", "how long a job waits when no GPU is warm")
	s.Float64Var(&f.waitWorth, "wait-worth", 32, "how many idle GPU-hours an hour of one waiting job is worth")
	s.Float64Var(&f.waitPrice, "wait-price", 0,
		"what an hour of one waiting job costs in USD; with --gpu-price, instead of --wait-worth")
	s.Float64Var(&f.gpuPrice, "gpu-price", 0, "what a GPU costs in USD an hour")
	s.BoolVar(&f.frontier, "frontier", false, "also show what more idling would buy, for each policy")
	s.StringVar(&f.html, "html", "", "also write a report with plots to this file")
	s.StringVarP(&f.output, "output", "o", "table", "table or json")
	s.StringVar(&f.config, "config", "",
		"take history, tenant, zone, wait-worth and boot from an agent's configuration where they are not given")
}

// completeFlags completes the flags from a configuration and checks them.
func (f *backtestFlags) completeFlags(cmd *cobra.Command, getenv func(string) string) error {
	if f.config != "" {
		if err := f.applyConfig(cmd, getenv); err != nil {
			return err
		}
	}
	if err := f.validate(cmd); err != nil {
		return &usageError{err}
	}
	if f.waitPrice > 0 {
		f.waitWorth = f.waitPrice / f.gpuPrice
	}
	return nil
}

func (f *backtestFlags) validate(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case f.history == "":
		return errors.New("--history FILE is needed; for Slurm, make it with: " + sacctLine)
	case !slices.Contains(backtest.Formats(), backtest.Format(f.format)):
		return fmt.Errorf("--format %s is not one of auto, sacct, csv, jsonl, kubernetes", f.format)
	case f.output != "table" && f.output != "json":
		return fmt.Errorf("--output %s is not one of table, json", f.output)
	case given("wait-price") && given("wait-worth"):
		return errors.New("--wait-price and --wait-worth mean the same: give one of them")
	case given("wait-price") && !(f.waitPrice > 0 && f.gpuPrice > 0):
		return errors.New("--wait-price needs --gpu-price, and both above 0")
	case given("gpu-price") && !(f.gpuPrice > 0):
		return errors.New("--gpu-price must be above 0")
	case given("days") && f.days < 1:
		return errors.New("--days must be at least 1")
	default:
		return f.checkFolder()
	}
}

// checkFolder finds a mistyped path before the work, not after it.
func (f *backtestFlags) checkFolder() error {
	if f.html == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(f.html)); err != nil || !info.IsDir() {
		return fmt.Errorf("--html %s: there is no folder %s", f.html, filepath.Dir(f.html))
	}
	return nil
}

// applyConfig takes what was not given from the agent's configuration.
func (f *backtestFlags) applyConfig(cmd *cobra.Command, getenv func(string) string) error {
	cfg, _, err := loadConfig(f.config, getenv)
	if err != nil {
		return err
	}
	given := cmd.Flags().Changed
	if !given("tenant") {
		f.tenant = cfg.Tenant
	}
	place := cfg.placeConfig()
	if !given("wait-worth") && !given("wait-price") {
		f.waitWorth = place.WaitWorth
	}
	if !given("boot") {
		f.boot = cmp.Or(place.Boot, f.boot)
	}
	for _, s := range cfg.Sources {
		if s.Kind == kindJobs && !given("history") && glob.IsPattern(s.Path) {
			return &usageError{fmt.Errorf("source %s is a pattern: name one file with --history", s.displayName())}
		}
		if s.Kind == kindJobs && !given("history") {
			f.history, f.format = s.Path, s.Format
			if s.Zone != "" && !given("zone") {
				f.zone = s.Zone
			}
			if s.OwnUser != "" && !given("own-user") {
				f.ownUser = s.OwnUser
			}
			break
		}
	}
	return nil
}

// runBacktest reads, replays and shows. Told to stop, it leaves nothing half done.
func (f *backtestFlags) runBacktest(cmd *cobra.Command, now time.Time) error {
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return &usageError{fmt.Errorf("--zone %s is not a time zone such as Europe/Berlin", f.zone)}
	}
	cfg := backtest.Config{
		WaitWorth: f.waitWorth, GPUPrice: f.gpuPrice, Boot: f.boot, Zone: zone, Days: f.days, Tenant: f.tenant, Now: now,
	}
	if err := cfg.Validate(); err != nil {
		return &usageError{err}
	}
	bar := newProgress(cmd.ErrOrStderr())
	cfg.Progress = bar.setShare
	report, err := f.replayHistory(cmd, cfg)
	bar.wipeBar()
	if err == nil {
		err = f.writeReport(cmd, report)
	}
	if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	return err
}

func (f *backtestFlags) replayHistory(cmd *cobra.Command, cfg backtest.Config) (backtest.Report, error) {
	file, err := tail.Open(f.history)
	if err != nil {
		return backtest.Report{}, fmt.Errorf("opening the history: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	input, err := backtest.Read(cmd.Context(), file, backtest.Format(f.format),
		history.Options{Zone: cfg.Zone, OwnUser: f.ownUser})
	if err != nil {
		return backtest.Report{}, err
	}
	tellBroken(cmd, input)
	report, err := backtest.Run(cmd.Context(), input, cfg)
	if _, unknown := errors.AsType[*backtest.NoTenantError](err); unknown {
		return report, &usageError{fmt.Errorf("--tenant: %w", err)}
	}
	return report, err
}

// tellBroken names the first rows that cannot be read.
func tellBroken(cmd *cobra.Command, in backtest.Input) {
	const told = 3
	for i, e := range in.Report.Errors {
		if i == told {
			break
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "left out: %v\n", &e)
	}
	if slices.ContainsFunc(in.Records, func(r history.Record) bool { return r.Nameless }) {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", whyNames)
	}
	if more := in.Report.Broken - told; more > 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "left out: %d more rows that cannot be read\n", more)
	}
}

func (f *backtestFlags) writeReport(cmd *cobra.Command, r backtest.Report) error {
	if f.html != "" {
		var page bytes.Buffer
		if err := show.HTML(&page, r); err != nil {
			return err
		}
		if err := statefile.Replace(f.html, page.Bytes()); err != nil {
			return err
		}
	}
	if f.output == "json" {
		return show.JSON(cmd.OutOrStdout(), r)
	}
	if err := show.Text(cmd.OutOrStdout(), r, f.frontier); err != nil {
		return err
	}
	if f.html != "" {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "Report: %s\n", strings.TrimSpace(f.html))
	}
	return nil
}
