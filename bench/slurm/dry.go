package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// dryLaunch is how long a job waits after its node's boot in the simulation: half of one of
// slurmctld's rounds, at a boot of five minutes as of twenty seconds.
const dryLaunch = 150 * time.Second

// dry replays whole weeks on a simulated cluster, and prints what each policy comes to: all
// weeks together, and how often the agent is better than the keep-alive that costs as much.
func dry(out io.Writer, o options) error {
	fmt.Fprintf(out, "SIMULATED: %d weeks on %d nodes that boot in %s, by the clock of the week; "+
		"no Slurm and no control plane ran\n", o.seeds, o.nodes, usualBoot)
	line := o.newTimeline(time.Time{})
	var alive []keepAlive
	for _, keep := range keepAlives(o, line) {
		k := keepAlive{keep: keep}
		for seed := range o.seeds {
			r, err := k.replay(o, seed)
			if err != nil {
				return err
			}
			k.weeks = append(k.weeks, r)
		}
		printDry(out, fmt.Sprintf("keepalive_%.0fm", keep.Minutes()), sumWeeks(k.weeks))
		alive = append(alive, k)
	}
	for _, worth := range o.worths {
		for _, mode := range o.modes {
			if err := dryForewarm(out, o, worth, mode, alive); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepAlives are the suspend times that are replayed, in the week's time: that of the cluster,
// which is nothing, and those of which one takes as long by the machine's clock.
func keepAlives(o options, line timeline) []time.Duration {
	all := []time.Duration{line.ofWeek(o.suspend)}
	for _, real := range []time.Duration{time.Minute, 90 * time.Second, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute,
		5 * time.Minute, 7 * time.Minute, 10 * time.Minute, 20 * time.Minute} {
		all = append(all, line.ofWeek(real))
	}
	return all
}

// keepAlive is a suspend time, and what it came to, week by week.
type keepAlive struct {
	keep  time.Duration
	weeks []dryResult
}

// settings are those of the simulated cluster.
func (o options) drySettings() drySettings {
	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	return drySettings{count: o.nodes, perNode: perNode, boot: seconds(usualBoot), launch: seconds(dryLaunch),
		suspend: seconds(o.newTimeline(time.Time{}).ofWeek(o.suspend)), idleRelease: seconds(o.idleRelease)}
}

func (k keepAlive) replay(o options, seed int) (dryResult, error) {
	s := o.drySettings()
	s.suspend = int64(k.keep / time.Second)
	return replayWeek(o, s, seed, nil)
}

// replayWeek replays the week of a seed, from its Monday to the end of its Sunday.
func replayWeek(o options, s drySettings, seed int, policy dryPolicy) (dryResult, error) {
	monday := o.newTimeline(time.Time{}).monday
	var jobs []dryJob
	for _, w := range makeWeek(o.seed+uint64(seed), 0, monday) { //nolint:gosec // a small number
		for range w.tasks {
			jobs = append(jobs, dryJob{submit: w.at.Unix(), length: int64(w.length / time.Second), nodes: w.nodes,
				gpus: w.gpus})
		}
	}
	return play(s, jobs, monday.Unix(), monday.AddDate(0, 0, 7).Unix(), policy)
}

// dryForewarm replays the agent at one price of waiting.
func dryForewarm(out io.Writer, o options, worth float64, mode dryMode, alive []keepAlive) error {
	var weeks []dryResult
	better := 0
	for seed := range o.seeds {
		with := o
		with.seed, with.waitWorth = o.seed+uint64(seed), worth //nolint:gosec // a small number
		a, err := newDryAgent(with, usualBoot+dryLaunch, mode)
		if err != nil {
			return err
		}
		r, err := replayWeek(o, o.drySettings(), seed, a)
		if err != nil {
			return err
		}
		if wait, found := waitAt(alive, r.overhead(), func(k keepAlive) dryResult { return k.weeks[seed] }); found &&
			r.wait() < wait {
			better++
		}
		weeks = append(weeks, r)
	}
	name := fmt.Sprintf("forewarm_%s_w%g", mode, worth)
	sum := sumWeeks(weeks)
	printDry(out, name, sum)
	if wait, found := waitAt(alive, sum.overhead(), keepAlive.sum); found {
		fmt.Fprintf(out, "figure: slurm_dry_%s_shorter_than_keepalive %.1f %%\n", name, 100*(1-sum.wait()/wait))
		fmt.Fprintf(out, "the keep-alive that costs as much waits %.1f s; Forewarm is better in %d of %d weeks\n",
			wait, better, len(weeks))
	}
	return nil
}

func (k keepAlive) sum() dryResult { return sumWeeks(k.weeks) }

func sumWeeks(weeks []dryResult) (sum dryResult) {
	for _, r := range weeks {
		sum.add(r)
	}
	return sum
}

// waitAt is the mean wait of a keep-alive that costs so much, on the straight line between the two
// that were replayed next to it; false where none costs more, or none less.
func waitAt(alive []keepAlive, overhead float64, of func(keepAlive) dryResult) (float64, bool) {
	sorted := slices.SortedFunc(slices.Values(alive), func(a, b keepAlive) int {
		return cmp.Compare(of(a).overhead(), of(b).overhead())
	})
	for i := 1; i < len(sorted); i++ {
		a, b := of(sorted[i-1]), of(sorted[i])
		if a.overhead() <= overhead && overhead <= b.overhead() && a.overhead() < b.overhead() {
			share := (overhead - a.overhead()) / (b.overhead() - a.overhead())
			return a.wait() + share*(b.wait()-a.wait()), true
		}
	}
	return 0, false
}

func printDry(out io.Writer, name string, r dryResult) {
	fmt.Fprintf(out, "figure: slurm_dry_%s_wait_s %.1f s\n", name, r.wait())
	fmt.Fprintf(out, "figure: slurm_dry_%s_overhead_percent %.1f %%\n", name, r.overhead())
	fmt.Fprintf(out, "figure: slurm_dry_%s_zero_wait_percent %.1f %%\n", name, r.zeroWait())
}
