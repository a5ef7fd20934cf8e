package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/forewarm/forewarm/bench/rig"
)

// run is one run of all arms, of which the last has Forewarm.
type run struct {
	options
	arms  []*cluster
	out   io.Writer
	notes io.Writer // for people who wait
	line  timeline
	plane *controlPlane
	agent *forecaster
}

// How often the agent looks, which is a minute of the week with boots of 20 s, how
// often the time left is told, and how long the end may take.
const (
	looksEvery = 4 * time.Second
	tellEvery  = 15 * time.Second
	endsWithin = 4 * time.Minute
)

// live lives through the days and judges them.
func (r *run) live(ctx context.Context) (err error) {
	r.line = r.newTimeline(time.Now().Add(time.Hour)) // it stands still until all is ready
	if r.plane, err = startControlPlane(ctx, r.arms[2], r.options, r.line); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.plane.stop()) }()
	r.line = r.newTimeline(time.Now().Add(5 * time.Second))
	if r.agent, err = newForecaster(ctx, r.options, r.arms[2], r.plane, r.line); err != nil {
		return err
	}
	week := r.submissions()
	fmt.Fprintf(r.out, "%d days of %s each, %.0f times as fast as the machine's clock; boots take %s; "+
		"SuspendTime %s, keepalive %s\n", r.days, r.line.ofWeek(r.day), r.line.speed(), r.boot, r.suspend, r.keepalive)
	if err := r.liveDays(ctx, week); err != nil {
		return err
	}
	return r.judge(ctx)
}

// submissions are those of the parts of the days that are lived through.
func (r *run) submissions() []submission {
	week := makeWeek(r.seed, 0, r.line.monday)
	return slices.DeleteFunc(week, func(s submission) bool {
		day := int(s.at.Sub(r.line.monday) / (24 * time.Hour))
		return day >= r.days || !s.at.Before(r.line.monday.AddDate(0, 0, day).Add(opening+r.line.busy()))
	})
}

// end is when the last day's submissions are over: in the middle of its work, so that
// what idles afterwards, and for how long, counts in no arm.
func (r *run) end() time.Time {
	return r.line.machineAt(r.line.monday.AddDate(0, 0, r.days-1).Add(opening + r.line.busy()))
}

// liveDays submits what is due, in all arms at once, until the end of the run.
// Beside it the agent looks.
func (r *run) liveDays(ctx context.Context, week []submission) error {
	ctx, stop := context.WithCancelCause(ctx)
	looks := make(chan struct{})
	go func() {
		defer close(looks)
		stop(r.look(ctx))
	}()
	end := r.end()
	told := time.Time{}
	for done := 0; ctx.Err() == nil && time.Now().Before(end); {
		next := end
		if done < len(week) {
			next = r.line.machineAt(week[done].at)
		}
		if !time.Now().Before(next) && done < len(week) {
			for _, c := range r.arms {
				c.submit(ctx, week[done], r.line.ofMachine(week[done].length))
			}
			done++
			continue
		}
		if time.Since(told) >= tellEvery {
			told = time.Now()
			fmt.Fprintf(r.notes, "day %d of %d, %s, %d of %d submissions, %s left; the agent: %s\n",
				1+int(max(0, time.Since(r.line.begin))/r.day), r.days, r.line.Now().Format("15:04"), done, len(week),
				time.Until(end).Truncate(time.Second), *r.agent.holds.Load())
		}
		pause(ctx, min(time.Until(next), tellEvery))
	}
	failed := context.Cause(ctx)
	stop(nil)
	<-looks
	return failed
}

// look has the agent look again and again.
func (r *run) look(ctx context.Context) error {
	for ctx.Err() == nil {
		begun := time.Now()
		if err := r.agent.step(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		pause(ctx, looksEvery-time.Since(begun))
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// judge waits for the last jobs, reads what happened, and prints it.
func (r *run) judge(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, endsWithin)
	defer stop()
	for _, c := range r.arms {
		if err := c.endAll(ctx); err != nil {
			return err
		}
	}
	truths := make([]truth, len(r.arms))
	for i, c := range r.arms {
		var err error
		if truths[i], err = readTruth(c, r.end()); err != nil {
			return err
		}
		printArm(r.out, c.name, truths[i])
	}
	v, err := r.judgeForewarm(ctx, truths[2])
	if err != nil {
		return err
	}
	r.printVerdict(v, truths)
	return nil
}

// judgeForewarm asks the control plane what it has seen, until it has seen all or has
// had enough time for it.
func (r *run) judgeForewarm(ctx context.Context, t truth) (verdict, error) {
	for tries := 0; ; tries++ {
		reports, err := r.plane.reports(ctx)
		if err != nil {
			return verdict{}, err
		}
		v := judgeReports(t, reports)
		if len(v.missed) == 0 || tries == 10 {
			return v, nil
		}
		pause(ctx, time.Second)
	}
}

// printVerdict prints what was claimed and who was delayed, arm by arm, each beside cold.
func (r *run) printVerdict(v verdict, truths []truth) {
	figure := func(name string, value int, unit string) { rig.Series{float64(value)}.Print(r.out, name, unit) }
	cold, last := truths[0], truths[2]
	fmt.Fprintf(r.out, "forewarm: %d of %d starts claimed a promise; the agent placed %d reservations, %d windows were "+
		"refused; %d heartbeats in %s with power\n", len(v.warm), len(last.starts), r.agent.placed, r.agent.refused,
		last.heartbeats, last.powered().Truncate(time.Second))
	printLines(r.out, "never reported: ", v.missed)
	printLines(r.out, "falsely claimed: ", v.falseClaims)
	rig.Series{quantile(waitsOf(v.warm), 0.5)}.Print(r.out, "slurm_warm_start_p50_s", "s")
	figure("slurm_false_claims", len(v.falseClaims), "starts")
	figure("slurm_missed_starts", len(v.missed), "starts")
	for i, prefix := range []string{"slurm_keepalive_jobs", "slurm_user_jobs"} {
		name := r.arms[i+1].name
		found, missing := delayed(truths[i+1].starts, cold.starts)
		printLines(r.out, name+": only in one arm: ", missing)
		for _, d := range found {
			fmt.Fprintf(r.out, "%s: later: %s%s\n", name, d.explain(), d.explainLuck(truths[i+1].starts, cold.starts))
		}
		figure(prefix+"_delayed", len(found), "jobs")
		figure(prefix+"_delayed_on_nodes_that_were_up", countBlocked(found), "jobs")
		figure(prefix+"_delayed_by_a_boot_that_cold_had_not", countLucky(found), "jobs")
		figure(prefix+"_delayed_by_slurms_launch_round", countByRound(found), "jobs")
	}
}

func printLines(out io.Writer, prefix string, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(out, prefix+line)
	}
}
