// Command forewarm-sim drives the real system in virtual time through a recorded
// job history.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/test/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		os.Exit(exitCode(err)) //nolint:gocritic // the deferred stop only gives the signal back
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{Use: "forewarm-sim", Short: "Drive the real system in virtual time", SilenceUsage: true}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(replayCommand())
	return root
}

// usageError is a command line that makes no sense.
type usageError struct{ error }

// exitCode is that of forewarm and its agent: 2 for what is wrong with the command
// itself, else 1.
func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok || strings.HasPrefix(err.Error(), "unknown command") {
		return 2
	}
	return 1
}

// flags of the replay command.
type flags struct {
	trace    string
	days     float64
	policies []string
	opt      sim.Options
}

// The policies that can be replayed, and what is added to the name of one that
// the pure benchmark did.
const (
	reactive  = "reactive"
	keepAlive = "keep-alive"
	forewarm  = "forewarm"
	pure      = ", pure"
)

func replayCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "replay --trace FILE",
		Short: "Replay part of a job trace through the real system, and compare it with the pure benchmark",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("%q is one argument too many: the trace is --trace FILE", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return replayTrace(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.trace, "trace", "",
		"job trace: CSV with job_id, group, submit_ts, duration_s, gpus; may be gzipped")
	cmd.Flags().Float64Var(&f.days, "days", 14, "how many days to replay, from three tenths of the trace on")
	cmd.Flags().Uint64Var(&f.opt.Seed, "seed", 1, "seed of everything random")
	cmd.Flags().DurationVar(&f.opt.Boot, "boot", 5*time.Minute, "boot time of a node")
	cmd.Flags().IntVar(&f.opt.PerNode, "gpus-per-node", 1, "GPUs of a node; the benchmark's unit is one")
	cmd.Flags().Float64Var(&f.opt.WaitWorth, "wait-worth", 32,
		"idle GPU-hours that an hour of one waiting job is worth")
	cmd.Flags().DurationVar(&f.opt.KeepAlive, "keep-alive", 10*time.Minute,
		"how long the policy keep-alive keeps a node that nobody holds")
	cmd.Flags().StringSliceVar(&f.policies, "policy", []string{reactive, keepAlive, forewarm}, "what to replay")
	return cmd
}

func replayTrace(ctx context.Context, f flags) error {
	if err := f.validate(); err != nil {
		return usageError{err}
	}
	file, err := os.Open(f.trace)
	if err != nil {
		return fmt.Errorf("opening the trace: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	trace, rep, err := sim.ReadTrace(file, f.days)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: %d rows, %d broken; learning from %d jobs, replaying %d from %s to %s (seed %d)\n",
		f.trace, rep.Rows, rep.Broken,
		len(trace.Before), len(trace.Jobs), trace.From.Format(time.DateOnly), trace.To.Format(time.DateOnly),
		f.opt.Seed)
	rows, err := replayAll(ctx, trace, f.listRuns())
	if err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		for _, r := range rows {
			fmt.Fprintf(os.Stderr, "interrupted: %s is replayed up to %s only\n", r.name, r.Until.Format(time.DateTime))
		}
	}
	writeReport(rows)
	compareWithBenchmark(rows)
	return ctx.Err()
}

// validate says which flag cannot be, or returns nil.
func (f flags) validate() error {
	switch {
	case f.trace == "":
		return errors.New("--trace FILE is missing")
	case !(f.days > 0 && f.days <= 366):
		return errors.New("--days must be above 0 and at most 366")
	case f.opt.Boot < time.Second || f.opt.Boot > time.Hour:
		return errors.New("--boot must be between 1s and 1h")
	case f.opt.PerNode < 1 || f.opt.PerNode > 64:
		return errors.New("--gpus-per-node must be between 1 and 64")
	case !(f.opt.WaitWorth > 0 && f.opt.WaitWorth <= 1e6):
		return errors.New("--wait-worth must be above 0 and at most 1000000")
	case f.opt.KeepAlive <= time.Second:
		return errors.New("--keep-alive must be above 1s")
	case len(f.policies) == 0 || slices.ContainsFunc(f.policies, isUnknown):
		return errors.New("--policy must be some of reactive, keep-alive and forewarm")
	default:
		return nil
	}
}

// listRuns are what is replayed: each policy through the system and, beside it, in
// the pure benchmark, which has no run for what it cannot do.
func (f flags) listRuns() []run {
	var list []run
	for _, name := range f.policies {
		opt := f.opt
		opt.Agent = name == forewarm
		if name != keepAlive {
			opt.KeepAlive = 0
		}
		list = append(list, run{name, opt, sim.Replay}, run{name + pure, opt, sim.Pure})
	}
	return list
}

// run is one row to be.
type run struct {
	name string
	opt  sim.Options
	do   func(context.Context, sim.Trace, sim.Options) (sim.Outcome, error)
}

// replayAll does the runs beside each other: each is a world of its own on one
// goroutine, so none changes another's outcome.
func replayAll(ctx context.Context, trace sim.Trace, runs []run) ([]row, error) {
	rows := make([]row, len(runs))
	errs := make([]error, len(runs))
	done := newProgress(runs)
	var wait sync.WaitGroup
	for i, r := range runs {
		r.opt.Progress = func(share float64) { done.printPercent(i, share) }
		wait.Go(func() {
			outcome, err := r.do(ctx, trace, r.opt)
			if err != nil {
				errs[i] = fmt.Errorf("replaying %s: %w", r.name, err)
			}
			rows[i] = row{r.name, outcome}
			done.printPercent(i, 1)
		})
	}
	wait.Wait()
	fmt.Fprintln(os.Stderr)
	return rows, errors.Join(errs...)
}

// progress is the line that tells how far the runs are.
type progress struct {
	mu    sync.Mutex
	names []string
	done  []int // percent
	began time.Time
}

func newProgress(runs []run) *progress {
	p := &progress{done: make([]int, len(runs)), began: time.Now()}
	for _, r := range runs {
		p.names = append(p.names, r.name)
	}
	return p
}

// printPercent prints the line when a run has done one more percent.
func (p *progress) printPercent(i int, share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	percent := int(100 * share)
	if percent <= p.done[i] {
		return
	}
	p.done[i] = percent
	line := "\r"
	for j, name := range p.names {
		line += fmt.Sprintf("%s %3d %%   ", name, p.done[j])
	}
	fmt.Fprintf(os.Stderr, "%s %s ", line, time.Since(p.began).Round(time.Second))
}

type row struct {
	name string
	sim.Outcome
}

func isUnknown(policy string) bool {
	return policy != reactive && policy != keepAlive && policy != forewarm
}

// writeReport writes the table and the figures that benchmarks read.
func writeReport(rows []row) {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"policy", "jobs", "starts", "zero-wait", "mean wait", "p95 wait", "busy GPU-h",
		"idle GPU-h", "idle", "boot GPU-h", "overhead"})
	var right []table.ColumnConfig
	for n := 2; n <= 11; n++ {
		right = append(right, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for _, r := range rows {
		t.AppendRow(table.Row{r.name, r.Jobs, r.Starts, fmt.Sprintf("%.1f %%", r.ZeroWaitRate()),
			fmt.Sprintf("%.1f s", r.MeanWait.Seconds()), fmt.Sprintf("%.0f s", r.P95Wait.Seconds()),
			fmt.Sprintf("%.0f", r.BusyHours), fmt.Sprintf("%.0f", r.IdleHours),
			fmt.Sprintf("%.2f %%", 100*r.IdleHours/max(r.BusyHours, 1e-9)),
			fmt.Sprintf("%.0f", r.BootHours), fmt.Sprintf("%.2f %%", r.Overhead())})
	}
	t.Render()
	for _, r := range rows {
		figure := func(what string, v float64, unit string) {
			fmt.Printf("figure: %s_%s %.3f %s\n", figureName(r.name), what, v, unit)
		}
		figure("starts", float64(r.Starts), "jobs")
		figure("zero_wait_rate", r.ZeroWaitRate(), "%")
		figure("mean_wait", r.MeanWait.Seconds(), "s")
		figure("p95_wait", r.P95Wait.Seconds(), "s")
		figure("idle_gpu_hours", r.IdleHours, "h")
		figure("idle_share", 100*r.IdleHours/max(r.BusyHours, 1e-9), "%")
		figure("overhead", r.Overhead(), "%")
		figure("orphans", float64(r.Orphans), "machines")
	}
}

// figureName is a row's name as figures have it.
func figureName(row string) string {
	return strings.NewReplacer(", ", "_", "-", "_", " ", "_").Replace(row)
}

// compareWithBenchmark writes how far the system is from the pure benchmark, in percent of
// the benchmark: each policy, and the worst of all.
func compareWithBenchmark(rows []row) {
	var wait, overhead float64
	for i, system := range rows {
		if i+1 == len(rows) || rows[i+1].name != system.name+pure {
			continue
		}
		benchmark := rows[i+1]
		figure := func(what string, got, want float64) float64 {
			off := 100 * (got - want) / max(want, 1e-9)
			fmt.Printf("figure: %s_agreement_%s %.3f %%\n", figureName(system.name), what, off)
			return math.Abs(off)
		}
		wait = max(wait, figure("wait", system.MeanWait.Seconds(), benchmark.MeanWait.Seconds()))
		overhead = max(overhead, figure("overhead", system.Overhead(), benchmark.Overhead()))
		figure("zero_wait_rate", system.ZeroWaitRate(), benchmark.ZeroWaitRate())
		figure("idle", system.IdleHours, benchmark.IdleHours)
		figure("boot", system.BootHours, benchmark.BootHours)
		figure("busy", system.BusyHours, benchmark.BusyHours)
	}
	fmt.Printf("figure: replay_agreement_wait %.3f %%\nfigure: replay_agreement_overhead %.3f %%\n", wait, overhead)
}
