// Command forecast is the benchmark of forecasting: it replays job traces
// against published policies and against Forewarm's own, and says what people
// would have waited at the same cost of idle GPUs. See bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/forewarm/forewarm/bench/forecast/regimes"
	"github.com/forewarm/forewarm/bench/traces"
)

// config is what the flags say.
type config struct {
	traces   []string // files
	boots    []int64  // seconds
	policies []string // nil for all
	channels []channel
	regimes  []string // synthetic histories, beside the traces,
	seed     uint64   // and what fixes them
	regret   bool     // compare Forewarm's cost with that of single experts
	runs     bool
	ablate   bool      // run the ablations, too
	pooled   bool      // replay tenants that share units, too
	capacity []float64 // percent of the highest demand that the tenants share, too
	failures []float64 // percent of boots that fail, of scenarios that are replayed, too
	spreads  []float64 // percent by which the 95th percentile of boots is longer than the median, of such scenarios
	cost     bool      // measure what the forecaster takes, too
	prior    string    // as the flag says
	worths   []float64 // of waiting, that Forewarm is run at; nil for all
	learn    string    // file to write a prior to, instead of a report
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	c, err := parseFlags()
	if err == nil {
		err = runProfiled(*profile, func() error { return runBenchmark(ctx, os.Stdout, c) })
	}
	var wrong usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(os.Stderr, "bench/forecast:", err)
		os.Exit(2)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "bench/forecast: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench/forecast:", err)
		os.Exit(1)
	}
}

// usageError says what to pass.
type usageError string

func (e usageError) Error() string { return string(e) }

const noTraces = usageError(`no trace was given.
The traces are not part of the project. Pass one, or a folder of them:
  make bench/forecast TRACE=philly.csv.gz
  make bench/forecast TRACES=folder/with/traces
A trace is a CSV file, plain or gzip, with a header and the columns job_id, user,
group, submit_ts (Unix seconds), duration_s, gpus, status, in order of submit_ts.`)

func parseFlags() (config, error) {
	from := flag.String("traces", "", "trace files and folders of them, separated by commas")
	boots := flag.String("boot", "300", "boot times in seconds, separated by commas")
	policies := flag.String("policies", "", "families to run, separated by commas; all of them if empty")
	channels := flag.String("evidence", "0.6/0.5,0.6/0.1",
		"recall/precision of the synthetic sources to replay with, separated by commas")
	synthetic := flag.String("regimes", "", "synthetic histories to run, too: all, or names separated by commas")
	seed := flag.Uint64("seed", regimes.Seed, "the seed of the synthetic histories")
	regret := flag.Bool("regret", false,
		"print what Forewarm costs against the best of single experts in hindsight, trace by trace")
	runs := flag.Bool("runs", false, "print every run of every family")
	ablate := flag.Bool("ablate", false, "run Forewarm without parts of what it sees, too")
	pooled := flag.Bool("pooled", false, "replay the traces once more with tenants that share all GPUs")
	capacity := flag.String("capacity", "",
		"replay the traces once more with tenants that share this many percent of the highest demand, separated by commas")
	failures := flag.String("boot-failures", "",
		"replay the traces once more where this many percent of boots fail and start anew, separated by commas")
	spreads := flag.String("boot-spread", "",
		"replay the traces once more where the 95th percentile of boots is this many percent longer than the median, "+
			"separated by commas")
	cost := flag.Bool("cost", false, "replay once more alone to measure the time and the memory of the forecaster")
	prior := flag.String("prior", "",
		"what Forewarm knows before: builtin, none or a file; empty learns it from the other traces given, or is "+
			"builtin if there are none")
	learn := flag.String("learn-prior", "", "learn a prior from the traces, write it to this file, and stop")
	worth := flag.String("worths", "",
		"idle GPU-hours that an hour of one waiting job is worth, separated by commas, to run Forewarm at fewer "+
			"than all")
	flag.Parse()
	c := config{runs: *runs, ablate: *ablate, cost: *cost, pooled: *pooled, prior: *prior, learn: *learn,
		regret: *regret, seed: *seed}
	for _, b := range strings.Split(*boots, ",") {
		n, err := strconv.ParseInt(b, 10, 64)
		if err != nil || n < tick || n%tick != 0 {
			return c, usageError(fmt.Sprintf("a boot of %q cannot be: want full minutes, in seconds", b))
		}
		c.boots = append(c.boots, n)
	}
	if *policies != "" {
		c.policies = strings.Split(*policies, ",")
	}
	for _, p := range c.policies {
		if !slices.ContainsFunc(listFamilies(), func(f family) bool { return f.name == p }) {
			return c, usageError(fmt.Sprintf("no family of policies is called %q; there are %s", p, familyNames()))
		}
	}
	var err error
	for _, w := range strings.FieldsFunc(*worth, func(r rune) bool { return r == ',' }) {
		x, err := strconv.ParseFloat(w, 64)
		if err != nil || x < 0 {
			return c, usageError(fmt.Sprintf("a worth of %q cannot be", w))
		}
		c.worths = append(c.worths, x)
	}
	if c.capacity, err = parsePercents("capacity", *capacity, 100); err != nil {
		return c, err
	}
	if c.failures, err = parsePercents("boot-failures", *failures, mostFailures); err != nil {
		return c, err
	}
	if c.spreads, err = parsePercents("boot-spread", *spreads, mostSpread); err != nil {
		return c, err
	}
	if c.channels, err = parseChannels(*channels); err != nil {
		return c, err
	}
	if c.regimes, err = listRegimes(*synthetic); err != nil {
		return c, err
	}
	c.traces, err = listTraces(*from)
	if errors.Is(err, noTraces) && len(c.regimes) > 0 {
		err = nil
	}
	return c, err
}

// listTraces lists the traces that a comma-separated list of files and folders names.
func listTraces(list string) ([]string, error) {
	all, err := traces.List(list)
	if err == nil && len(all) == 0 {
		return nil, noTraces
	}
	return all, err
}

func runProfiled(path string, f func() error) error {
	if path == "" {
		return f()
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("creating the profile: %w", err)
	}
	defer file.Close()
	if err = pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("starting the profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	return f()
}

// parseChannels reads recall/precision pairs.
func parseChannels(list string) ([]channel, error) {
	var all []channel
	for _, pair := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		recall, precision, _ := strings.Cut(pair, "/")
		var ch channel
		var err, err2 error
		ch.recall, err = strconv.ParseFloat(recall, 64)
		ch.precision, err2 = strconv.ParseFloat(precision, 64)
		if err != nil || err2 != nil || !ch.isSound() {
			return nil, usageError(fmt.Sprintf("evidence of %q cannot be: want recall/precision, such as 0.6/0.5",
				pair))
		}
		all = append(all, ch)
	}
	return all, nil
}
