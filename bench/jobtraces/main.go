// Command jobtraces plays traces of jobs through core/scheduler on a cluster of a fixed
// size, under its own policy and under others', and says how long jobs wait. See
// bench/README.md.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/bench/traces"
	"github.com/forewarm/forewarm/core/backtest"
	"github.com/forewarm/forewarm/core/scheduler"
)

// config is what the flags say.
type config struct {
	traces     []string
	uses       []int
	ofPeak     bool
	arms       []string
	checkpoint time.Duration
	seed       uint64
	most       int
	ours       tuning
}

// tuning replaces what the default policy says; what is 0 does not.
type tuning struct {
	promises           int
	overdue, softening time.Duration
	shareWeight        float64
}

func (t tuning) apply(p *scheduler.Policy) {
	p.Promises = cmp.Or(t.promises, p.Promises)
	p.Overdue = cmp.Or(t.overdue, p.Overdue)
	p.Softening = cmp.Or(t.softening, p.Softening)
	p.ShareWeight = cmp.Or(t.shareWeight, p.ShareWeight)
}

func main() {
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	c, err := parseFlags()
	if err == nil {
		err = profiled(*profile, func() error { return runBenchmark(os.Stdout, c) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/jobtraces:", err)
		os.Exit(1)
	}
}

var errNoTraces = errors.New(`no trace was given.
The traces are not part of the project. Pass one, or a folder of them:
  make bench/jobtraces TRACE=philly.csv.gz
  make bench/jobtraces TRACES=folder/with/traces
A trace is a CSV file, plain or gzip, with a header and the columns job_id, user,
group, submit_ts (Unix seconds), duration_s, gpus, status, in order of submit_ts.
-drawn plays one that is made up`)

func parseFlags() (config, error) {
	from := flag.String("traces", "", "trace files and folders of them, separated by commas")
	use := flag.String("use", "70,85,95", "percents of the cluster that the jobs use, separated by commas")
	of := flag.String("of", "mean", "use is the mean of the cluster (mean), or the cluster is so much of the peak (peak)")
	arms := flag.String("arms", "", "policies, separated by commas; all of them if empty")
	checkpoint := flag.Duration("checkpoint", 10*time.Minute, "how often jobs keep their work, where they do")
	seed := flag.Uint64("seed", 1, "of the limits that people set")
	most := flag.Int("most", 0, "play only so many jobs; 0: all")
	drawn := flag.Bool("drawn", false, "play a made-up trace, to see that it works")
	var ours tuning
	flag.IntVar(&ours.promises, "promises", 0, "of the balanced policies, instead of the default")
	flag.DurationVar(&ours.overdue, "overdue", 0, "of the balanced policies, instead of the default")
	flag.DurationVar(&ours.softening, "softening", 0, "of the balanced policies, instead of the default")
	flag.Float64Var(&ours.shareWeight, "share-weight", 0, "of the balanced policies, instead of the default")
	flag.Parse()
	c := config{ours: ours, ofPeak: *of == "peak", checkpoint: *checkpoint, seed: *seed, most: *most}
	for _, u := range strings.Split(*use, ",") {
		n, err := strconv.Atoi(u)
		if err != nil || n < 1 || n > 100 {
			return c, fmt.Errorf("a use of %q cannot be: want percents", u)
		}
		c.uses = append(c.uses, n)
	}
	for _, name := range strings.FieldsFunc(*arms, func(r rune) bool { return r == ',' }) {
		if _, found := findArm(name); !found {
			return c, fmt.Errorf("no policy is called %q; there are %s", name, armNames())
		}
		c.arms = append(c.arms, name)
	}
	var err error
	c.traces, err = traces.List(*from)
	if *drawn {
		c.traces = append(c.traces, drawnName)
	}
	if err == nil && len(c.traces) == 0 {
		err = errNoTraces
	}
	return c, err
}

func profiled(path string, f func() error) error {
	if path == "" {
		return f()
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("creating the profile: %w", err)
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("starting the profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	return f()
}

func runBenchmark(out io.Writer, c config) error {
	for _, path := range c.traces {
		t, err := readOrDraw(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if c.most > 0 && c.most < len(t.Jobs) {
			t.Jobs = t.Jobs[:c.most]
		}
		for _, use := range c.uses {
			if err := c.compare(out, traces.Name(path), t, use); err != nil {
				return fmt.Errorf("%s at %d %%: %w", path, use, err)
			}
		}
	}
	return nil
}

func readOrDraw(path string) (backtest.Trace, error) {
	if path == drawnName {
		return drawTrace(), nil
	}
	return traces.Read(path)
}

// compare plays one trace on one cluster under each policy.
func (c config) compare(out io.Writer, name string, t backtest.Trace, use int) error {
	nodes := c.nodesFor(t, use)
	w := newWorkload(t, nodes, c.seed)
	fmt.Fprintf(out, "\n%s at %d %%: %d jobs on %d nodes of %d GPUs, %d that no cluster of the size holds left out\n",
		name, use, len(w.jobs), nodes, gpusPerNode, w.dropped)
	fmt.Fprintf(out, "%-24s %9s %9s %10s %9s %9s %6s %8s\n", "policy", "mean s", "p95 s", "longest s", "slowdown",
		"lost GPUh", "left", "took")
	scores := map[string]score{}
	for _, a := range listArms() {
		if len(c.arms) > 0 && !slices.Contains(c.arms, a.name) {
			continue
		}
		if a.policy.Order == scheduler.Balanced {
			c.ours.apply(&a.policy)
		}
		begun := time.Now()
		s, err := w.play(a, c.checkpoint)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		scores[a.name] = s
		s.print(out, a.name, time.Since(begun))
	}
	printFigures(out, fmt.Sprintf("%s_%d", name, use), scores)
	return nil
}
