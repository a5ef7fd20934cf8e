package jobs

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/explain"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/problem"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// change is a request that changes a job.
type change func(*client.Client, context.Context, string) (contract.Job, error)

// steering is a command that changes jobs.
type steering struct {
	name, short, long string
	make              change
	makeAll           changeAll
	// states are those in which it does something, which are: of an array the jobs in others are left out.
	states []string
	are    string
	asks   bool     // before all jobs of somebody are changed
	shows  []column // beside what lists of jobs have
}

var (
	waits = []string{contract.JobPending, contract.JobHeld}
	runs  = []string{contract.JobScheduled, contract.JobRunning, contract.JobPreempted}
)

func newRequeueCommand(a *app.App) *cobra.Command {
	var hold bool
	c := newChangeCommand(a, steering{name: "requeue", short: "End what jobs have running, and have them begin anew",
		long: `End what jobs have running, as forewarm jobs cancel does, and have them wait for GPUs again; with --hold
they are held instead, until forewarm jobs release. What earlier attempts wrote stays: forewarm jobs logs --attempt N.`,
		make: func(api *client.Client, ctx context.Context, id string) (contract.Job, error) {
			if hold {
				return api.ShelveJob(ctx, id)
			}
			return api.RequeueJob(ctx, id)
		},
		makeAll: func(api *client.Client, ctx context.Context, set contract.JobSet) (contract.JobsChanged, error) {
			if hold {
				return api.ShelveJobs(ctx, set)
			}
			return api.RequeueJobs(ctx, set)
		}, states: runs, are: "running", asks: true})
	c.Flags().BoolVar(&hold, "hold", false, "hold them once they have ended")
	return c
}

func newHoldCommand(a *app.App) *cobra.Command {
	return newChangeCommand(a, steering{name: "hold", short: "Keep jobs that wait from starting",
		long: `Keep jobs that wait from starting. A job that runs is not touched by that: forewarm jobs requeue --hold ends
what it runs, and holds it.`,
		make: (*client.Client).HoldJob, makeAll: (*client.Client).HoldJobs, states: waits[:1], are: "waiting"})
}

func newReleaseCommand(a *app.App) *cobra.Command {
	return newChangeCommand(a, steering{name: "release", short: "Let jobs that are held start",
		long: "Let jobs that are held start.", make: (*client.Client).ReleaseJob, makeAll: (*client.Client).ReleaseJobs,
		states: waits[1:], are: "held"})
}

// newCancelCommand is the command jobs cancel.
func newCancelCommand(a *app.App) *cobra.Command {
	return newChangeCommand(a, steering{name: "cancel", short: "End jobs, whether they wait or run",
		long: `End jobs. What runs gets TERM, and KILL when its --grace is over; the job is cancelled once it has ended.
What it wrote stays.`,
		make: (*client.Client).CancelJob, makeAll: (*client.Client).CancelJobs, states: slices.Concat(waits, runs),
		are: "waiting or running", asks: true})
}

// newChangeCommand is a command that changes each job that is named, of an array all that it can change, and, with
// --mine, all that one has submitted.
func newChangeCommand(a *app.App, s steering) *cobra.Command { return newSteeredCommand(a, &s) }

// newSteeredCommand is newChangeCommand of what may be made up while its flags are read.
func newSteeredCommand(a *app.App, s *steering) *cobra.Command {
	var of selection
	c := &cobra.Command{
		Use: s.name + " JOB [JOB…]", Short: s.short, Long: s.long + `

An array, by its name or its id, stands for all of its jobs that this can be done to; NAME[7] for its job of index 7,
NAME[1-3,7] for several.
--mine stands for all that you submitted. However many jobs these are, they are changed by few requests, and counted.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := of.check(cmd, args, *s); err != nil {
				return err
			}
			api, what, err := of.find(a, cmd, args)
			if err != nil {
				return err
			}
			if n := len(what.jobs) + len(what.sets); n > 1 && a.Flags.IdempotencyKey != "" {
				return exit.UsageErrorf(cmd.CommandPath()+" --help", "--idempotency-key is of one request, and these are %d", n)
			}
			if a.Flags.DryRun {
				return s.showOnly(a, cmd, api, what)
			}
			if err := s.confirm(a, cmd, api, what); err != nil {
				return err
			}
			return s.changeChosen(a, cmd, api, what)
		},
	}
	of.addFlags(c, *s)
	return c
}

// changeChosen changes jobs and sets of jobs, and shows what became of them. What fails keeps the others from nothing.
func (s steering) changeChosen(a *app.App, cmd *cobra.Command, api *client.Client, what chosen) error {
	var jobs []contract.Job
	var sets []setChanged
	var failed error
	fail := func(of string, err error) {
		if failed == nil {
			failed = err
		} else {
			a.Say(cmd, "%s: %s", of, problem.Explain(cmd, err).Message)
		}
	}
	for _, id := range what.jobs {
		got, err := s.make(api, a.WithIdempotencyKey(cmd.Context()), id)
		if err == nil {
			jobs = append(jobs, got)
		} else if fail(id, err); cmd.Context().Err() != nil {
			break
		}
	}
	for _, set := range what.sets {
		got, err := s.changeSet(a, cmd, api, set)
		if got.Changed > 0 || err == nil {
			sets = append(sets, setChanged{ArrayID: set.ArrayID, JobsChanged: got})
		}
		if err != nil {
			fail(nameOfSet(set), err)
		}
	}
	tellUnheard(a, cmd, api, jobs)
	return errors.Join(failed, s.showChanged(a, cmd, jobs, sets))
}

// showChanged shows jobs, and counts those of sets, beside jobs in notes: two tables nobody could read by a program.
func (s steering) showChanged(a *app.App, cmd *cobra.Command, jobs []contract.Job, sets []setChanged) error {
	switch {
	case len(jobs) == 0 && len(sets) == 0:
		return nil
	case len(jobs) == 0:
		return output.List(a, cmd, setView, sets)
	}
	for _, x := range sets {
		a.Say(cmd, "%s  %s", x.name(), x.text())
	}
	view := ViewAt(a.Clock.Now())
	view.Columns = slices.Clone(view.Columns)
	for _, shown := range s.shows {
		if i := slices.IndexFunc(view.Columns, func(x column) bool { return x.Head == shown.Head }); i >= 0 {
			view.Columns[i].Wide = false
		} else {
			view.Columns = append(view.Columns, shown)
		}
	}
	return output.List(a, cmd, view, jobs)
}

// newExplainCommand is the command jobs explain.
func newExplainCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "explain JOB", Short: "See why a job waits, and what would let it start", Args: flags.ExactArgs("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.JobID(a, cmd, args[0])
			if err != nil {
				return err
			}
			got, err := api.ExplainJob(cmd.Context(), id)
			if err != nil {
				return err
			}
			return explain.Show(a, cmd, got)
		},
	}
}
