package jobs

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/listing"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// newListCommand is the command jobs list.
func newListCommand(a *app.App) *cobra.Command {
	var f client.JobFilter
	var since, until, zone string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List jobs", Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, err := a.Zone(cmd, zone)
			if err != nil {
				return err
			}
			if f.Since, err = when.ParsePast(cmd, "since", since, a.Clock.Now(), in); err != nil {
				return err
			}
			if f.Until, err = when.ParsePast(cmd, "until", until, a.Clock.Now(), in); err != nil {
				return err
			}
			if f.User, err = names.User(a, cmd, f.User); err != nil {
				return err
			}
			return listJobs(a, cmd, f)
		},
	}
	c.Flags().BoolVar(&f.All, "all", false, "include those that are over")
	c.Flags().StringSliceVar(&f.State, "state", nil, "only those in any of these states, also ending")
	c.Flags().StringVar(&f.Pool, "pool", "", "only those in this pool")
	c.Flags().StringVar(&f.Name, "name", "", "only those with this name, or one of an array, as in 'NAME[7]'")
	c.Flags().StringVar(&since, "since", "", "only those submitted since: a time, or how long ago, such as 7d; includes "+
		"those that are over")
	c.Flags().StringVar(&until, "until", "", "only those submitted before: a time, or how long ago; includes those that "+
		"are over")
	c.Flags().StringVar(&zone, "tz", "", "time zone of --since and --until (default the machine's)")
	c.Flags().StringVar(&f.Array, "array", "", "those of this array, by its id, also if they are over")
	c.Flags().StringVar(&f.User, "user", "", "only those that this person submitted: id, e-mail address or me")
	c.Flags().BoolVar(&f.Mine, "mine", false, "only those that you submitted")
	c.MarkFlagsMutuallyExclusive("user", "mine")
	listing.AddLimit(c)
	return c
}

// states are those that a list of jobs shows, and can be narrowed to.
var states = []string{contract.JobPending, contract.JobHeld, contract.JobScheduled, contract.JobRunning, ending,
	contract.JobPreempted, contract.JobCompleted, contract.JobFailed, contract.JobCancelled}

func checkStates(cmd *cobra.Command, wanted []string) error {
	for _, s := range wanted {
		if !slices.Contains(states, s) {
			return exit.UsageErrorf(cmd.CommandPath()+" --help", "--state %q must be one of %s", s, strings.Join(states, ", "))
		}
	}
	return nil
}

func listJobs(a *app.App, cmd *cobra.Command, f client.JobFilter) error {
	f.Name, f.Index = names.SplitIndex(f.Name)
	shown := f.State
	if err := checkStates(cmd, shown); err != nil {
		return err
	}
	if slices.Contains(shown, ending) { // which is no state of its own, but shown as one
		f.State = append(slices.DeleteFunc(slices.Clone(shown), func(s string) bool { return s == ending }),
			contract.JobScheduled, contract.JobRunning)
	}
	some := false
	read := func(api *client.Client, ctx context.Context, page client.Filter) iter.Seq2[contract.Job, error] {
		f.PageSize = page.PageSize
		return func(yield func(contract.Job, error) bool) {
			for x, err := range api.Jobs(ctx, f) {
				wanted := len(shown) == 0 || slices.Contains(shown, x.State) || isEnding(x) && slices.Contains(shown, ending)
				some = some || wanted
				if (wanted || err != nil) && !yield(x, err) {
					return
				}
			}
		}
	}
	err := listing.Run(a, cmd, ViewAt(a.Clock.Now()), read, client.Filter{})
	isTable := a.Flags.Output == output.Table || a.Flags.Output == output.Wide
	onlyLive := !f.All && f.Array == "" && len(shown) == 0 && f.Since.IsZero() && f.Until.IsZero()
	if err == nil && !some && isTable && onlyLive {
		a.Say(cmd, "Jobs that are over are listed with --all.")
	}
	return err
}

// newShowCommand is the command jobs show.
func newShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "show JOB", Short: "Show one job", Args: flags.ExactArgs("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := names.JobID(a, cmd, args[0])
			if err != nil {
				return err
			}
			got, err := api.JobInQueue(cmd.Context(), id)
			if err != nil {
				return err
			}
			return showJob(a, cmd, got)
		},
	}
}

// showJob shows one job, with what was asked for.
func showJob(a *app.App, cmd *cobra.Command, x contract.Job) error {
	return output.One(a, cmd, showViewAt(a.Clock.Now()), x)
}

// NewQueueCommand is the command queue.
func NewQueueCommand(a *app.App) *cobra.Command {
	var f client.Filter
	c := &cobra.Command{
		Use: "queue", Short: "See which jobs wait, in the order in which they would start now, and why",
		Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := listing.Run(a, cmd, queueViewAt(a.Clock.Now()), queues, f); err != nil {
				return err
			}
			return sayAround(a, cmd, f)
		},
	}
	c.Flags().StringVar(&f.Pool, "pool", "", "only those that wait in this pool")
	listing.AddLimit(c)
	return c
}

// sayAround says below the table of a queue what is around it.
func sayAround(a *app.App, cmd *cobra.Command, f client.Filter) error {
	if a.Filter != nil || a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
		return nil
	}
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	if err := sayNoWorker(a, cmd, api, f); err != nil {
		return err
	}
	return sayHeld(a, cmd, api, f)
}

// sayNoWorker says that nothing starts because no worker is there, which any pool knows.
func sayNoWorker(a *app.App, cmd *cobra.Command, api *client.Client, f client.Filter) error {
	var p contract.Pool
	var err error
	if f.Pool != "" {
		p, err = api.Pool(cmd.Context(), f.Pool)
	} else {
		next, stop := iter.Pull2(api.Pools(cmd.Context(), client.Filter{PageSize: 1}))
		defer stop()
		p, err, _ = next()
	}
	if err == nil && !p.NoWorkerSince.IsZero() {
		a.Say(cmd, "no worker has been seen since %s; nothing is started before one is there: ask an operator, who has "+
			"forewarm doctor", format.Time(p.NoWorkerSince))
	}
	return err
}

// sayHeld says how many jobs are in no queue because somebody holds them.
func sayHeld(a *app.App, cmd *cobra.Command, api *client.Client, f client.Filter) error {
	f.State = []string{contract.JobHeld}
	counts, err := api.CountJobs(cmd.Context(), client.JobFilter{Filter: f})
	if err != nil || counts.Held == 0 {
		return err
	}
	narrowed := ""
	if f.Pool != "" {
		narrowed = " --pool " + flags.Quote(f.Pool)
	}
	a.Say(cmd, "%s %s held: forewarm jobs list --state held%s", format.Count(counts.Held, "job"),
		format.IsOrAre(counts.Held), narrowed)
	return nil
}

// queues are the jobs that wait in a pool, or in each.
//
//nolint:revive // its parameters are those of the client's methods
func queues(api *client.Client, ctx context.Context, f client.Filter) iter.Seq2[contract.Job, error] {
	if f.Pool != "" {
		return api.Queue(ctx, f)
	}
	return func(yield func(contract.Job, error) bool) {
		for pool, err := range api.Pools(ctx, client.Filter{}) {
			if err != nil {
				yield(contract.Job{}, err)
				return
			}
			for job, err := range api.Queue(ctx, client.Filter{Pool: pool.ID, PageSize: f.PageSize}) {
				if job.PoolName == "" {
					job.PoolName = pool.Name
				}
				if !yield(job, err) || err != nil {
					return
				}
			}
		}
	}
}
