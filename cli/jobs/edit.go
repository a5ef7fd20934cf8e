package jobs

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// edit is what the flags of jobs edit say.
type edit struct {
	flags           *pflag.FlagSet
	name, priority  string
	pool            string
	maxRuntime      flags.Span
	notBefore, zone string
	preemptible     bool
	patch           contract.JobPatch
}

// newEditCommand is the command jobs edit.
func newEditCommand(a *app.App) *cobra.Command {
	e := &edit{}
	s := &steering{name: "edit", short: "Change what jobs ask for", long: `Change what jobs that wait, or are held, ask
for. That they have waited counts as before, unless --not-before puts them off. Of a job that runs the name, the
priority, and whether it may leave for others can be changed; what has begun keeps its limit and its pool, and jobs of
an array the name that they share.`,
		make: func(api *client.Client, ctx context.Context, id string) (contract.Job, error) {
			return e.patchOne(ctx, api, id)
		},
		makeAll: func(api *client.Client, ctx context.Context, set contract.JobSet) (contract.JobsChanged, error) {
			return api.PatchJobs(ctx, set, e.patch)
		}, states: slices.Concat(waits, runs[:2]), are: "waiting or held"}
	c := newSteeredCommand(a, s)
	e.bind(c.Flags())
	c.Flags().Lookup("pool").Usage = "as --to-pool; with --mine: only those in this pool"
	change := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := e.build(a, cmd); err != nil {
			return err
		}
		if e.patch.Preemptible != nil && (slices.Contains(args, "false") || slices.Contains(args, "true")) {
			return exit.UsageErrorf(cmd.CommandPath()+" JOB --preemptible=false", "write --preemptible=false: without the = it "+
				"means true, and false is taken for a job")
		}
		if s.shows = e.columns(); !e.suitsRunning() {
			s.states = waits
		} else {
			s.are = "waiting, held or running"
		}
		return change(cmd, args)
	}
	return c
}

// suitsRunning reports whether jobs that run can be changed so, too.
func (e *edit) suitsRunning() bool {
	return e.patch.MaxRuntimeSeconds == nil && e.patch.NotBefore == nil && e.patch.Pool == nil
}

// columns show what was changed, but for what lists of jobs have.
func (e *edit) columns() (all []column) {
	if e.patch.Pool != nil {
		all = append(all, column{Head: "POOL", Cell: poolText})
	}
	if e.patch.Priority != nil {
		all = append(all, column{Head: "PRIORITY", Cell: func(x contract.Job) string { return x.Priority }})
	}
	if e.patch.MaxRuntimeSeconds != nil {
		all = append(all, column{Head: "MAX RUNTIME",
			Cell: func(x contract.Job) string { return format.Seconds(x.MaxRuntimeSeconds) }})
	}
	if e.patch.NotBefore != nil {
		all = append(all, column{Head: "NOT BEFORE", Cell: func(x contract.Job) string { return format.Time(x.NotBefore) }})
	}
	if e.patch.Preemptible != nil {
		all = append(all, column{Head: "PREEMPTIBLE", Cell: preemptibleText})
	}
	return all
}

func (e *edit) bind(f *pflag.FlagSet) {
	e.flags = f
	f.StringVar(&e.name, "name", "", "what to call them")
	f.StringVar(&e.pool, "to-pool", "", "the pool in which they are to wait")
	f.StringVar(&e.priority, "priority", "", "priority class: low, normal or high, or as your site names them")
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
	if mine, _ := e.flags.GetBool("mine"); !mine && e.flags.Changed("pool") { // which narrows --mine
		if e.flags.Changed("to-pool") {
			return exit.UsageErrorf(cmd.CommandPath()+" --help",
				"--pool and --to-pool both name the pool in which they are to wait: give one of them")
		}
		to, _ := e.flags.GetString("pool")
		_, _ = e.flags.Set("pool", ""), e.flags.Set("to-pool", to)
		e.flags.Lookup("pool").Changed = false // what is to be typed again names --to-pool
	}
	if e.flags.Changed("to-pool") {
		e.patch.Pool = &e.pool
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
		return exit.UsageErrorf(cmd.CommandPath()+" --help", "nothing is to change: name one of --name, --to-pool, "+
			"--priority, --max-runtime, --not-before and --preemptible")
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
