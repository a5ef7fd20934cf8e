package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/internal/clock"
	"github.com/forewarm/forewarm/internal/httpx"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/node/attach"
	"github.com/forewarm/forewarm/node/burnin"
	"github.com/forewarm/forewarm/node/gpu"
	"github.com/forewarm/forewarm/node/hold"
	"github.com/forewarm/forewarm/node/report"
	"github.com/forewarm/forewarm/node/watch"
)

const runName = "run"

func newRunCommand(o outside) *cobra.Command {
	var path, level, format string
	flags := defaultConfig()
	c := &cobra.Command{
		Use: runName, Short: "Join the control plane, and report until told to stop", Args: cobra.NoArgs,
		Example: "  forewarm-node run --url https://forewarm.example.com --node nod_… --token-file join-token\n" +
			"  forewarm-node run --config /etc/forewarm/forewarm-node.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			logging, err := obs.ParseConfig(level, format)
			if err != nil {
				return &usageError{err}
			}
			cfg, err := loadConfig(path, o.getenv, cmd.Flags())
			if err != nil {
				return err
			}
			log := obs.NewLogger(cmd.ErrOrStderr(), logging).With("program", "forewarm-node")
			return runDaemon(cmd.Context(), cfg, newSteady(o.clock, o.uptime), cmd.InOrStdin(), log)
		},
	}
	flags.addFlags(c.Flags())
	flags.addRunFlags(c.Flags())
	c.Flags().StringVar(&path, "config", "", "the configuration file")
	c.Flags().StringVar(&level, "log-level", "", "debug, info, warn or error")
	c.Flags().StringVar(&format, "log-format", "", "text or json")
	return c
}

// mostAnswer bounds the answer to a report, in bytes: orders of jobs come with their input.
const mostAnswer = 32 << 20

// runDaemon reports until it is told to stop, or refused for good.
func runDaemon(ctx context.Context, cfg config, c steady, stdin io.Reader, log *slog.Logger) error {
	if cfg.URL == "" || cfg.Node == "" {
		return &usageError{errors.New("it needs the control plane's address and the node's id: --url and --node")}
	}
	state, err := report.OpenState(cfg.StateDir)
	if err != nil {
		return err
	}
	token, err := cfg.readToken(stdin)
	if err != nil {
		return err
	}
	bootID, epoch, err := thisBoot(c)
	if err != nil {
		return err
	}
	memory := state.Health().For(bootID)
	source := newSource(cfg)
	defer source.Close()
	kernel := openKernelLog(cfg, memory.KernelSeq, log)
	if kernel != nil {
		defer kernel.Close()
	}
	prober := cfg.prober()
	holds, none, err := cfg.openHolds(c, bootID, prober, log)
	if err != nil {
		return err
	}
	what := report.Config{URL: cfg.URL, NodeID: cfg.Node, Token: token, Version: versionText(), BootID: bootID,
		Epoch: epoch, LookEvery: cfg.LookEvery, ReportEvery: cfg.ReportEvery, Log: log, Random: newJitter(),
		HTTP: httpx.NewClient(httpx.Config{Timeout: 10 * time.Second, MaxBody: mostAnswer,
			UserAgent: "forewarm-node/" + versionText()})}
	if holds != nil {
		what.Holds = holds
		if s, is := source.(*gpu.Simulated); is {
			s.Working = holds.Working
		}
	}
	watcher := watch.New(source, kernel, cfg.policy(), memory)
	watcher.TestWith(burnin.Tester{Prober: prober, Mode: burnin.Mode(cfg.BurnIn)})
	reporter, err := report.New(what, watcher, state)
	if err != nil {
		return err
	}
	hurry := make(chan struct{}, 1)
	work, err := cfg.openJobs(ctx, holds, none, reporter, hurry, log)
	if err != nil {
		return err
	}
	defer work.Close()
	reporter.Jobs = work
	log.InfoContext(ctx, "reporting", "node", cfg.Node, "to", cfg.URL, "source",
		strings.Join(cfg.sources(), " or "))
	if holds != nil {
		supervisors, earlier, err := cfg.openSupervisors()
		if err != nil {
			return err
		}
		defer supervisors.Close()
		holds.Resume() // what an earlier daemon had runners and supervisors start, an end has to find
		stop, err := serveSessions(ctx, attach.Config{URL: cfg.URL, Version: versionText(), BootID: bootID, Epoch: epoch,
			Key: keyOnceLooked(reporter, holds), Holds: holds, Supervisors: supervisors, Earlier: earlier,
			Log: log, Hurry: func() {
				reporter.Ask()
				ring(hurry)
			}}, func() { ring(hurry) })
		if err != nil {
			return err
		}
		defer stop()
	}
	return repeatSteps(ctx, reporter, c, hurry)
}

// keyOnceLooked is the node's key, once the GPUs have been looked at.
func keyOnceLooked(r *report.Reporter, holds *hold.Keeper) func() obs.Secret {
	return func() obs.Secret {
		if !holds.Looked() {
			return obs.Secret{}
		}
		return r.Key()
	}
}

// newJitter returns a source of random times, which need no secrecy.
func newJitter() *rand.Rand {
	return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) //nolint:gosec // as said
}

// repeatSteps does each step when it is due, and at once when somebody is in a hurry.
func repeatSteps(ctx context.Context, r *report.Reporter, c clock.Clock, hurry <-chan struct{}) error {
	for {
		next, err := r.Step(ctx, c.Now())
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		timer := time.NewTimer(max(next.Sub(c.Now()), 0))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
			continue
		case <-hurry:
		}
		timer.Stop()
		r.Hurry()
	}
}

// sources are the names of those of this machine's figures, in the order in which they are tried.
func (c config) sources() (all []string) {
	if c.Simulate > 0 {
		return []string{gpu.FromSimulated}
	}
	if gpu.HasNVML && c.Source != sourceSMI {
		all = append(all, gpu.FromNVML)
	}
	if c.Source != sourceNVML {
		all = append(all, gpu.FromSMI)
	}
	return all
}

// newSource is where the figures of this machine come from.
func newSource(cfg config) gpu.Source {
	var all gpu.FirstOf
	for _, name := range cfg.sources() {
		switch name {
		case gpu.FromSimulated:
			return &gpu.Simulated{Seed: cmp.Or(cfg.SimulateSeed, cfg.Node), Count: cfg.Simulate, MemoryMiB: 81_920}
		case gpu.FromNVML:
			if self, err := os.Executable(); err == nil {
				all = append(all, &gpu.Child{Command: []string{self, nvmlArgument}, PCIe: cfg.PCIeThroughput})
			}
		case gpu.FromSMI:
			all = append(all, &gpu.SMI{})
		}
	}
	return cfg.withExporter(all)
}

// openKernelLog opens the kernel's log from after a record on, or returns nil: in many
// containers it may not be read, and NVML tells of XIDs too.
func openKernelLog(cfg config, after int64, log *slog.Logger) *gpu.KernelLog {
	if cfg.KernelLog == "" || cfg.Simulate > 0 {
		return nil
	}
	kernel, err := gpu.OpenKernelLog(cfg.KernelLog, after)
	if err != nil {
		log.Info("the kernel's log cannot be read: XIDs come from NVML alone", "error", err)
		return nil
	}
	return kernel
}

// thisBoot is what the kernel calls this boot, and how many milliseconds it is old. Where
// the kernel does not say, the daemon's start stands for it: a restart then joins anew.
func thisBoot(c clock.Clock) (id string, epoch int64, err error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		start := c.Now().UnixMilli()
		return fmt.Sprintf("started-%d", start), start, nil
	}
	up, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return "", 0, fmt.Errorf("reading how long the machine is up: %w", err)
	}
	seconds, err := strconv.ParseFloat(strings.Fields(string(up) + " x")[0], 64)
	if err != nil {
		return "", 0, fmt.Errorf("reading how long the machine is up: %w", err)
	}
	return strings.TrimSpace(string(text)), int64(seconds * 1000), nil
}
