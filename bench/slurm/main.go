// Command slurm measures what warm nodes are worth to the users of a Slurm cluster
// whose nodes boot and suspend, on real daemons: three private clusters side by
// side get the same submissions at the same moments. One is left alone (cold), one
// suspends idle nodes later (keepalive), and one has Forewarm beside it.
//
// What is accelerated, and how. The users' week is made up (makeWeek). A boot of the
// private clusters takes -boot (20 s) and counts as one of five minutes, so the clock
// of the week runs 15 times as fast as the machine's: 24 minutes are six hours of its
// Monday. What is given in the week's time is so much shorter: the users' work,
// SuspendTime, the agent's looks, and the control plane's timers, as far as they are
// minutes. Of several days (-days) each is cut off at the same time, and the nights
// are left out. What is not accelerated is Slurm: its scheduler and its programs take
// the time that they take, which counts 15 times as long as it would.
//
// Forewarm is forewarm up in a process of its own, with its usual configuration for an
// observed pool, and the agent as it is: statistics alone, no model, learning from
// four made-up weeks before and from what squeue has shown by now. Nothing of it
// sees what is still to come. What happened is read from Slurm's own log of
// completed jobs, from what its ResumeProgram and SuspendProgram were called for, and
// from what the jobs noted when they began; see bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	days        int
	day         time.Duration
	boot        time.Duration
	suspend     time.Duration
	keepalive   time.Duration
	nodes       int
	seed        uint64
	weeksBefore int
	waitWorth   float64
	forewarm    string
	withSlurm   string
	idleRelease time.Duration
	dry         bool
	seeds       int       // with dry: weeks, each of a seed
	worths      []float64 // with dry
	modes       []dryMode // with dry
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parseOptions()
	switch {
	case err == nil && o.dry:
		err = dry(os.Stdout, o)
	case err == nil:
		err = measure(ctx, os.Stdout, o)
	}
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "\ninterrupted: there are no figures")
		os.Exit(130) //nolint:gocritic // the clusters were stopped
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func parseOptions() (options, error) {
	var o options
	minutes := flag.Float64("minutes", 24, "length of all days, of which the last minute is not lived through")
	smoke := flag.Bool("smoke", false, "one day with boots of 6 s, to see that it still works; its figures say nothing")
	flag.IntVar(&o.days, "days", 1, "days of the week to live through, from Monday on; -minutes are of all of them")
	flag.DurationVar(&o.boot, "boot", 20*time.Second, "how long a node takes to boot, in whole seconds")
	flag.DurationVar(&o.suspend, "suspend", 30*time.Second, "SuspendTime of the arms cold and forewarm")
	flag.DurationVar(&o.keepalive, "keepalive", 3*time.Minute, "SuspendTime of the arm keepalive")
	flag.IntVar(&o.nodes, "nodes", 8, "nodes of each cluster")
	flag.Uint64Var(&o.seed, "seed", 1, "of the made-up weeks")
	flag.IntVar(&o.weeksBefore, "weeks-before", 4, "weeks that the agent has a history of")
	flag.Float64Var(&o.waitWorth, "wait-worth", 32,
		"the agent's: idle GPU-hours that an hour of one waiting job is worth")
	flag.StringVar(&o.forewarm, "forewarm", "bin/forewarm", "the program")
	flag.StringVar(&o.withSlurm, "with-slurm", "scripts/with-slurm", "what starts a cluster")
	flag.DurationVar(&o.idleRelease, "idle-release", 10*time.Minute, "idle_release of the pool, in the week's time")
	flag.BoolVar(&o.dry, "dry", false, "replay whole weeks on a simulated cluster instead: no Slurm, and some minutes")
	flag.IntVar(&o.seeds, "seeds", 5, "with -dry: how many weeks, of the seeds from -seed on")
	worths := flag.String("worths", "16,32,64", "with -dry: the values of -wait-worth")
	modes := flag.String("agents", "jobs,room,nodes",
		"with -dry: told of jobs; of what is free, too; of whole nodes instead")
	flag.Parse()
	var err error
	if o.worths, err = parseWorths(*worths); err != nil {
		return o, err
	}
	for mode := range strings.SplitSeq(*modes, ",") {
		o.modes = append(o.modes, dryMode(mode))
	}
	if *smoke {
		o.days, *minutes, o.boot = 1, 1.6, 6*time.Second
		o.suspend, o.keepalive = 15*time.Second, 20*time.Second
	}
	o.day = time.Duration(*minutes * float64(time.Minute) / float64(max(1, o.days))).Truncate(time.Second)
	return o, o.validate()
}

// parseWorths reads numbers with commas between them.
func parseWorths(text string) (all []float64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		worth, err := strconv.ParseFloat(part, 64)
		if err != nil || !(worth > 0) {
			return nil, fmt.Errorf("-worths: %q is no number above 0", part)
		}
		all = append(all, worth)
	}
	return all, nil
}

// validate says what is wrong with the flags, or returns nil.
func (o options) validate() error {
	switch {
	case o.days < 1 || o.days > 7:
		return errors.New("-days: a week has 1 to 7")
	case o.boot < time.Second || o.boot%time.Second != 0 || o.boot > usualBoot:
		return errors.New("-boot: must be whole seconds up to five minutes")
	case o.suspend < 15*time.Second || o.keepalive < o.suspend:
		return errors.New("-suspend and -keepalive: must be 15 s or more, and the second not shorter")
	case o.nodes < 2 || o.nodes > 64 || o.idleRelease < 0 || o.weeksBefore < 1 || o.weeksBefore > 52 || !(o.waitWorth > 0):
		return errors.New("-nodes: 2 to 64; -weeks-before: 1 to 52; -wait-worth: above 0")
	case slices.ContainsFunc(o.modes, func(m dryMode) bool { return m != unaware && m != aware && m != ofNodes }):
		return errors.New("-agents: jobs, room or nodes")
	case o.seeds < 1 || o.seeds > 100:
		return errors.New("-seeds: 1 to 100")
	case o.newTimeline(time.Time{}).busy() < 10*time.Minute:
		return fmt.Errorf("-minutes: a day of %s has no time for work beside boots of %s", o.day, o.boot)
	}
	return nil
}

// newTimeline is the week whose first day begins at a time. Its Monday lies in the
// past, so that nothing depends on today.
func (o options) newTimeline(begin time.Time) timeline {
	return timeline{begin: begin, monday: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), day: o.day, boot: o.boot}
}

// measure starts the clusters, lives through the week, and prints the figures.
func measure(ctx context.Context, out io.Writer, o options) (err error) {
	if err := ensureRoot(); err != nil {
		return err
	}
	var arms []*cluster
	defer func() {
		for _, c := range arms {
			err = errors.Join(err, c.stop())
		}
	}()
	for _, arm := range []struct {
		name    string
		suspend time.Duration
	}{{"cold", o.suspend}, {"keepalive", o.keepalive}, {"forewarm", o.suspend}} {
		c, err := startCluster(ctx, o, arm.name, arm.suspend)
		if err != nil {
			return err
		}
		arms = append(arms, c)
	}
	r := &run{options: o, arms: arms, out: out, notes: os.Stderr}
	return r.live(ctx)
}

func ensureRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("it must run as root, as slurmd does: sudo make bench/slurm")
	}
	return nil
}
