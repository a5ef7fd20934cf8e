package jobs

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// selection is what the flags of a command say of the jobs that it changes, beside those that are named.
type selection struct {
	array  string
	mine   bool
	states []string
	pool   string
}

// chosen are jobs by their ids, and sets of jobs, each once.
type chosen struct {
	jobs []string
	sets []contract.JobSet
}

func (of *selection) addFlags(c *cobra.Command, s steering) {
	c.Flags().StringVar(&of.array, "array", "", "all jobs of this array that this can be done to, by its id")
	c.Flags().BoolVar(&of.mine, "mine", false, "all jobs that you submitted and that this can be done to")
	c.Flags().StringSliceVar(&of.states, "state", nil, "with --mine: only those in any of these states")
	c.Flags().StringVar(&of.pool, "pool", "", "with --mine: only those in this pool")
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(s.states, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses a selection that says nothing, or too much: by mistake nobody changes all of their jobs.
func (of *selection) check(cmd *cobra.Command, args []string, s steering) error {
	usage := func(message string, args ...any) error {
		return exit.UsageErrorf(cmd.CommandPath()+" --help", message, args...)
	}
	switch {
	case of.mine && (len(args) > 0 || of.array != ""):
		return usage("--mine stands for all of your jobs: name none beside it")
	case !of.mine && (len(of.states) > 0 || of.pool != ""):
		return usage("--state and --pool narrow --mine, which is not given")
	case len(args) == 0 && of.array == "" && !of.mine:
		return flags.ExactArgs("JOB")(cmd, args)
	}
	for _, state := range of.states {
		if !slices.Contains(s.states, state) {
			return usage("--state %s: %s changes jobs that are %s", state, s.name, strings.Join(s.states, ", "))
		}
	}
	return nil
}

// find finds what is named, and what the flags say.
func (of *selection) find(a *app.App, cmd *cobra.Command, refs []string) (*client.Client, chosen, error) {
	var what chosen
	api, err := a.NewClient()
	if err != nil {
		return nil, what, err
	}
	if of.mine {
		what.sets = []contract.JobSet{{Mine: true, States: of.states, Pool: of.pool}}
		return api, what, nil
	}
	for _, ref := range refs {
		found, err := names.FindAllJobs(a, cmd, ref)
		if err != nil {
			return nil, what, err
		}
		for _, one := range found {
			what.add(one)
		}
	}
	if of.array != "" {
		what.add(names.Jobs{ID: of.array, IsArray: true})
	}
	return api, what, nil
}

func (w *chosen) add(found names.Jobs) {
	isSame := func(set contract.JobSet) bool { return set.ArrayID == found.ID }
	switch {
	case found.IsArray && !slices.ContainsFunc(w.sets, isSame):
		w.sets = append(w.sets, contract.JobSet{ArrayID: found.ID})
	case !found.IsArray && !slices.Contains(w.jobs, found.ID):
		w.jobs = append(w.jobs, found.ID)
	}
}

// filterOf are the jobs of a set that the command changes.
func (s steering) filterOf(set contract.JobSet) client.JobFilter {
	f := client.JobFilter{Array: set.ArrayID, Mine: set.Mine, Filter: client.Filter{Pool: set.Pool, State: set.States}}
	if len(f.State) == 0 {
		f.State = s.states
	}
	return f
}

// confirm asks before much of somebody's work is ended.
func (s steering) confirm(a *app.App, cmd *cobra.Command, api *client.Client, what chosen) error {
	if !s.asks || len(what.sets) == 0 || !what.sets[0].Mine || a.Flags.Yes {
		return nil
	}
	counts, err := api.CountJobs(cmd.Context(), s.filterOf(what.sets[0]))
	if err != nil {
		return err
	}
	n := counts.Pending + counts.Held + counts.Scheduled + counts.Running + counts.Preempted
	if n == 0 {
		return nil
	}
	return a.Confirm(cmd, strings.ToUpper(s.name[:1])+s.name[1:]+" "+format.Count(n, "job")+" of yours")
}

// showOnly shows the jobs that would be changed.
func (s steering) showOnly(a *app.App, cmd *cobra.Command, api *client.Client, what chosen) error {
	var all []contract.Job
	for _, id := range what.jobs {
		got, err := api.Job(cmd.Context(), id)
		if err != nil {
			return err
		}
		all = append(all, got)
	}
	for _, set := range what.sets {
		found, err := s.readSet(cmd.Context(), api, set)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	a.Say(cmd, "Dry run: nothing was changed, and the server was not asked whether it would agree. Would %s:", s.name)
	return output.List(a, cmd, ViewAt(a.Clock.Now()), all)
}

func (s steering) readSet(ctx context.Context, api *client.Client, set contract.JobSet) ([]contract.Job, error) {
	all, err := client.All(api.Jobs(ctx, s.filterOf(set)))
	if err == nil && len(all) == 0 && set.ArrayID != "" {
		err = s.noneOf(set)
	}
	return all, err
}
