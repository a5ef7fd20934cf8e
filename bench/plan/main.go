// Command plan measures one run of the planner over a large pool, in memory. See
// bench/README.md.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/plan"
)

const small, large = 10_000, 100_000

func main() {
	count := flag.Int("count", 5, "runs of which each figure is the median")
	seed := flag.Uint64("seed", 1, "of the pool's bookings")
	profile := flag.String("cpuprofile", "", "write a profile of the runs to this file")
	flag.Parse()
	if err := runBenchmark(os.Stdout, max(1, *count), *seed, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func runBenchmark(out io.Writer, count int, seed uint64, profile string) error {
	pools := map[int]*pool{}
	for _, n := range []int{small, large} {
		p, err := buildPool(n, seed)
		if err != nil {
			return fmt.Errorf("building a pool with %d reservations: %w", n, err)
		}
		p.printPool(out)
		pools[n] = p
	}
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return fmt.Errorf("creating the profile: %w", err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("starting the profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	ready, anew := map[int]time.Duration{}, map[int]time.Duration{}
	for _, n := range []int{small, large} {
		ready[n] = medianTime(out, count, fmt.Sprintf("%6d reservations, calendar at hand", n), pools[n].withCalendar)
		anew[n] = medianTime(out, count, fmt.Sprintf("%6d reservations, calendar built  ", n), pools[n].withoutCalendar)
	}
	printFigure(out, "plan_ms", toMilliseconds(ready[small]), "ms")
	printFigure(out, "plan_growth_10x", float64(ready[large])/float64(ready[small]), "x")
	printFigure(out, "plan_rebuilt_ms", toMilliseconds(anew[small]), "ms")
	printFigure(out, "plan_rebuilt_growth_10x", float64(anew[large])/float64(anew[small]), "x")
	return nil
}

// medianTime runs the planner count times after one run that is not counted, and
// shows every run.
func medianTime(out io.Writer, count int, what string, compute func() plan.Result) time.Duration {
	compute()
	times := make([]time.Duration, count)
	for i := range times {
		begun := time.Now()
		compute()
		times[i] = time.Since(begun)
	}
	fmt.Fprintf(out, "%s:", what)
	for _, d := range times {
		fmt.Fprintf(out, " %.2f", toMilliseconds(d))
	}
	fmt.Fprintln(out, " ms")
	slices.Sort(times)
	return times[len(times)/2]
}

func toMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func printFigure(out io.Writer, name string, value float64, unit string) {
	fmt.Fprintf(out, "figure: %s %.2f %s\n", name, value, unit)
}
