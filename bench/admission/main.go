// Command admission measures how many requests core/admission decides in a
// second, on one core, in a pool of 1,250 nodes of 8 GPUs with 10,000 and with
// 100,000 bookings over 30 days, against limits of every kind.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/internal/clock"
)

func main() {
	if err := runBenchmark(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/admission:", err)
		os.Exit(1)
	}
}

func runBenchmark() error {
	count := flag.Int("count", 5, "runs; the figures are their medians")
	duration := flag.Duration("duration", 2*time.Second, "length of one run")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the timed parts to this file")
	flag.Parse()
	small, large := newWorld(10_000, 1), newWorld(100_000, 10)
	for _, w := range []*world{small, large} {
		accepted, err := w.checkDecisions()
		if err != nil {
			return err
		}
		fmt.Printf("%d bookings, load %.0f %%, %d of %d requests accepted, each with its place\n", w.bookings,
			100*w.load, accepted, len(w.requests))
	}
	if *profile == "" {
		compareWorlds(small, large, *count, *duration)
		return nil
	}
	file, err := os.Create(*profile)
	if err != nil {
		return fmt.Errorf("creating the profile: %w", err)
	}
	defer file.Close()
	if err = pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("starting the profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	compareWorlds(small, large, *count, *duration)
	return nil
}

// compareWorlds measures both worlds in turn and prints the figures.
func compareWorlds(small, large *world, count int, duration time.Duration) {
	var perSecond, growth, allocs, cpu []float64
	for i := range count {
		few, many := small.measureSpeed(duration), large.measureSpeed(duration)
		fmt.Printf("run %d: %.0f and %.0f decisions a second, %.2f and %.2f µs of CPU each\n", i+1, few.perSecond,
			many.perSecond, few.cpu, many.cpu)
		cpu = append(cpu, few.cpu)
		perSecond, growth, allocs = append(perSecond, few.perSecond), append(growth, few.perSecond/many.perSecond),
			append(allocs, few.allocs)
	}
	fmt.Printf("figure: admission_per_s %.0f 1/s\n", medianOf(perSecond))
	fmt.Printf("figure: admission_growth_10x %.2f x\n", medianOf(growth))
	fmt.Printf("figure: admission_cpu_us %.2f us\n", medianOf(cpu))
	fmt.Printf("figure: admission_allocs %.4f per decision\n", medianOf(allocs))
}

// speed is what one run measured; cpu is the microseconds of processor time that
// a decision took, which a machine that does other things as well changes less.
type speed struct{ perSecond, allocs, cpu float64 }

// measureSpeed decides the requests that are accepted, one after the other, until
// the time is over.
func (w *world) measureSpeed(d time.Duration) speed {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := clock.System{}
	start, used, n := c.Now(), processorTime(), 0
	for c.Now().Sub(start) < d {
		for range 1000 {
			admission.Decide(w.accepted[n%len(w.accepted)], w.view)
			n++
		}
	}
	passed, busy := c.Now().Sub(start), processorTime()-used
	runtime.ReadMemStats(&after)
	return speed{perSecond: float64(n) / passed.Seconds(), allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		cpu: busy.Seconds() * 1e6 / float64(n)}
}

// processorTime is what this process has used so far, in user and system mode.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// checkDecisions decides every request once, notes which are accepted, and proves of
// each of those that it can be booked where the decision says.
func (w *world) checkDecisions() (accepted int, err error) {
	for _, r := range w.requests {
		d := admission.Decide(r, w.view)
		if !d.Accepted() {
			continue
		}
		b := calendar.Booking{ID: "checked", Interval: d.Window, Slots: d.Slots, GPUs: r.Shape.PerNode}
		if err := w.view.Slots.Place(b); err != nil {
			return accepted, fmt.Errorf("an accepted request has no place: %w", err)
		}
		w.view.Slots.Remove(b.ID)
		w.accepted = append(w.accepted, r)
		accepted++
	}
	if accepted < len(w.requests)/2 {
		return accepted, fmt.Errorf("only %d of %d requests are accepted: this is not the hot path", accepted,
			len(w.requests))
	}
	return accepted, nil
}

func medianOf(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
