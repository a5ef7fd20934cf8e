// Command schedule measures cycles of core/scheduler over a large cluster, in memory. See
// bench/README.md.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

const small, large = 10_000, 100_000

func main() {
	count := flag.Int("count", 5, "runs of which each figure is the median")
	changes := flag.Int("changes", 200, "single changes in a run, each with a cycle after it")
	scale := flag.Int("scale", 1, "divide jobs and nodes by this, to see that it still works")
	seed := flag.Uint64("seed", 1, "of the jobs")
	profile := flag.String("cpuprofile", "", "write a profile of the runs to this file")
	flag.Parse()
	if err := profiled(*profile, func() error {
		return runBenchmark(os.Stdout, max(1, *count), max(1, *changes), max(1, *scale), *seed)
	}); err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
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

func runBenchmark(out io.Writer, count, changes, scale int, seed uint64) error {
	var restored, first, next, growth, delta, deltaLarge rig.Series
	for i := range count {
		a, err := measure(small/scale, changes, seed+uint64(i))
		if err != nil {
			return err
		}
		b, err := measure(large/scale, changes, seed+uint64(i))
		if err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintf(out, "%d jobs: %d start, %d wait; %d jobs: %d start, %d wait\n", small/scale, a.started,
				a.waiting, large/scale, b.started, b.waiting)
		}
		restored = append(restored, milliseconds(a.restored))
		first = append(first, milliseconds(a.full))
		next = append(next, milliseconds(b.full))
		growth = append(growth, float64(b.full)/float64(a.full))
		delta, deltaLarge = append(delta, milliseconds(a.delta)), append(deltaLarge, milliseconds(b.delta))
	}
	restored.Print(out, "schedule_restore_ms", "ms")
	first.Print(out, "schedule_ms", "ms")
	next.Print(out, "schedule_10x_ms", "ms")
	growth.Print(out, "schedule_growth_10x", "x")
	delta.Print(out, "schedule_delta_ms", "ms")
	deltaLarge.Print(out, "schedule_delta_10x_ms", "ms")
	return nil
}

// measured is what one run took.
type measured struct {
	restored, full, delta time.Duration
	started, waiting      int
}

// measure times making the scheduler from a snapshot, the first cycle over all jobs on an
// empty cluster, and then the median cycle after one change, with the change.
func measure(jobs, changes int, seed uint64) (measured, error) {
	c := newContest(jobs, seed)
	runtime.GC()
	begun := time.Now()
	if err := c.restore(); err != nil {
		return measured{}, err
	}
	m := measured{restored: time.Since(begun)}
	runtime.GC()
	begun = time.Now()
	m.started = c.decide()
	m.full, m.waiting = time.Since(begun), c.s.Waiting()
	var times rig.Series
	for range changes {
		d, err := c.change()
		if err != nil {
			return measured{}, err
		}
		times = append(times, float64(d))
	}
	m.delta = time.Duration(times.Median())
	return m, c.check()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
