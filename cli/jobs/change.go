package jobs

import (
	"context"
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

func newRequeueCommand(a *app.App) *cobra.Command {
	return newChangeCommand(a, "requeue", "End what jobs have running, and have them begin anew", `End what jobs have
running, and have them wait for GPUs again. What earlier attempts wrote stays: forewarm jobs logs --attempt N.`,
		(*client.Client).RequeueJob)
}

func newHoldCommand(a *app.App) *cobra.Command {
	return newChangeCommand(a, "hold", "Keep jobs that wait from starting", "", (*client.Client).HoldJob)
}

func newReleaseCommand(a *app.App) *cobra.Command {
	return newChangeCommand(a, "release", "Let jobs that are held start", "", (*client.Client).ReleaseJob)
}

// newCancelCommand is the command jobs cancel.
func newCancelCommand(a *app.App) *cobra.Command {
	return newChangeCommand(a, "cancel", "End jobs, whether they wait or run", `End jobs. What runs gets TERM, and
KILL soon after. What a job wrote stays.`, (*client.Client).CancelJob)
}

// newChangeCommand is a command that changes each job that is named, or all of an array.
func newChangeCommand(a *app.App, name, short, long string, make change) *cobra.Command {
	var array string
	c := &cobra.Command{
		Use: name + " JOB [JOB…]", Short: short, Long: long,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && array == "" {
				return flags.ExactArgs("JOB")(cmd, args)
			}
			api, ids, err := findAll(a, cmd, args, array)
			if err != nil {
				return err
			}
			if len(ids) > 1 && a.Flags.IdempotencyKey != "" {
				return exit.UsageErrorf(cmd.CommandPath()+" --help", "--idempotency-key is of one request, and these are %d",
					len(ids))
			}
			return changeAll(a, cmd, api, ids, make)
		},
	}
	c.Flags().StringVar(&array, "array", "", "all jobs of this array that are not over, by its id")
	return c
}

// findAll are the ids of jobs by their names, and of those of an array.
func findAll(a *app.App, cmd *cobra.Command, refs []string, array string) (*client.Client, []string, error) {
	api, err := a.NewClient()
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for _, ref := range refs {
		_, id, err := names.JobID(a, cmd, ref)
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, id)
	}
	if array == "" {
		return api, ids, nil
	}
	for job, err := range api.Jobs(cmd.Context(), client.JobFilter{Array: array}) {
		if err != nil {
			return nil, nil, err
		}
		if !client.IsJobOver(job.State) && !slices.Contains(ids, job.ID) {
			ids = append(ids, job.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil, &exit.Error{Code: exit.NotFound, Message: "no job of the array " + array + " is waiting or running",
			Next: []string{"forewarm jobs list --all --array " + flags.Quote(array)}}
	}
	return api, ids, nil
}

// changeAll changes jobs and shows them. What fails keeps the others from nothing.
func changeAll(a *app.App, cmd *cobra.Command, api *client.Client, ids []string, make change) error {
	if a.Flags.DryRun {
		make = (*client.Client).Job
	}
	var changed []contract.Job
	var failed error
	for _, id := range ids {
		got, err := make(api, a.WithIdempotencyKey(cmd.Context()), id)
		switch {
		case err == nil:
			changed = append(changed, got)
		case failed == nil:
			failed = err
		default:
			a.Say(cmd, "%s: %s", id, problem.Explain(cmd, err).Message)
		}
		if cmd.Context().Err() != nil {
			break
		}
	}
	if a.Flags.DryRun && failed == nil {
		a.Say(cmd, "Dry run: nothing was changed, and the server was not asked whether it would agree. Would %s:", cmd.Name())
	}
	if len(changed) > 0 {
		if err := output.List(a, cmd, ViewAt(a.Clock.Now()), changed); err != nil {
			return err
		}
	}
	return failed
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
