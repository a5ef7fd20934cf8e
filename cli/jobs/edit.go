package jobs

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// edit is what the flags of jobs edit say.
type edit struct {
	flags           *pflag.FlagSet
	name, priority  string
	maxRuntime      flags.Duration
	notBefore, zone string
	preemptible     bool
	patch           contract.JobPatch
}

// newEditCommand is the command jobs edit.
func newEditCommand(a *app.App) *cobra.Command {
	e := &edit{}
	c := newChangeCommand(a, steering{"edit", "Change what jobs that wait ask for", `Change what jobs that wait, or are
held, ask for. That they have waited counts as before. What has begun keeps its limits, and jobs of an array the name
that they share.`,
		func(api *client.Client, ctx context.Context, id string) (contract.Job, error) {
			return e.patchOne(ctx, api, id)
		},
		func(api *client.Client, ctx context.Context, set contract.JobSet) (contract.JobsChanged, error) {
			return api.PatchJobs(ctx, set, e.patch)
		}, waits, "waiting or held", false})
	e.bind(c.Flags())
	change := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := e.build(a, cmd); err != nil {
			return err
		}
		if e.patch.Preemptible != nil && (slices.Contains(args, "false") || slices.Contains(args, "true")) {
			return exit.UsageErrorf(cmd.CommandPath()+" JOB --preemptible=false", "write --preemptible=false: without the = it "+
				"means true, and false is taken for a job")
		}
		return change(cmd, args)
	}
	return c
}

func (e *edit) bind(f *pflag.FlagSet) {
	e.flags = f
	f.StringVar(&e.name, "name", "", "what to call them")
	f.StringVar(&e.priority, "priority", "", "low, normal or high")
	f.Var(&e.maxRuntime, "max-runtime", "how long they may run")
	f.StringVar(&e.notBefore, "not-before", "", "they start no earlier: 'tomorrow 09:00', 'mon 14:30', 'in 2h' or now")
	f.StringVar(&e.zone, "tz", "", "time zone of --not-before (default the machine's)")
	f.BoolVar(&e.preemptible, "preemptible", false, "they may be told to leave for jobs that go before them")
}

// build reads the flags that were given.
func (e *edit) build(a *app.App, cmd *cobra.Command) error {
	if e.flags.Changed("name") {
		e.patch.Name = &e.name
	}
	if e.flags.Changed("priority") {
		e.patch.Priority = &e.priority
	}
	if e.flags.Changed("max-runtime") {
		e.patch.MaxRuntimeSeconds = new(e.maxRuntime.Seconds())
	}
	if e.flags.Changed("preemptible") {
		e.patch.Preemptible = &e.preemptible
	}
	if e.flags.Changed("not-before") {
		zone, err := a.Zone(cmd, e.zone)
		if err != nil {
			return err
		}
		at, err := when.Parse(e.notBefore, a.Clock.Now(), zone)
		if err != nil {
			return when.BlameFlag(cmd, "not-before", err)
		}
		e.patch.NotBefore = &at
	}
	if e.patch == (contract.JobPatch{}) {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "nothing is to change: name one of --name, --priority, "+
			"--max-runtime, --not-before and --preemptible")
	}
	return nil
}

// patchOne changes the version of a job that it has just read.
func (e *edit) patchOne(ctx context.Context, api *client.Client, id string) (contract.Job, error) {
	j, err := api.Job(ctx, id)
	if err != nil {
		return j, err
	}
	return api.PatchJob(ctx, id, j.Version, e.patch)
}
