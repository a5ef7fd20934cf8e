package reservations

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/await"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/explain"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/cli/when"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// reserveOptions are what forewarm reserve is told.
type reserveOptions struct {
	gpus                    int
	pool, model, name       string
	at, every, zone, onFull string
	class, dst, workload    string
	forJobs                 string
	notBefore, notAfter     string
	skip                    []string
	length                  flags.Span
	layout                  contract.Layout
	needs                   contract.Needs
}

// NewReserveCommand is the command reserve.
func NewReserveCommand(a *app.App) *cobra.Command {
	var r reserveOptions
	c := newBaseReserveCommand(a, &r)
	c.Short += ", once or repeatedly"
	f := c.Flags()
	f.StringVar(&r.every, "every", "", "repeat: weekday, weekend, daily, weekly, monthly or an RRULE")
	f.StringSliceVar(&r.skip, "skip", nil, "with --every: local dates to skip, such as 2026-12-24")
	f.StringVar(&r.dst, "dst", "",
		"with --every: shift or skip a start that daylight saving time leaves out (default shift)")
	return c
}

// reserveText says what the flags of reserve are together.
const reserveText = `Which GPUs: --gpus with --pool, or with what the pool must have: --model, --region, ` +
	`--min-gpu-memory,
--min-node-memory. --nodes, --gpus-per-node and --spread arrange them on nodes; two of the three numbers give the third.
When: --at and --for, in the time zone --tz; or --not-before, --not-after or both, with --for, for the first time with
room. Without room the command fails and shows what would be accepted instead; --on-full queue joins the waitlist.
At the start: forewarm reservations claim, or forewarm run: a job of yours that fits claims it by itself, as much of it
as it needs; --for-jobs says whose jobs do. In an observed pool, a job that the cluster starts then claims it. If nobody
claims the reservation, it ends when the pool's warm hold is over.`

// NewSingleReserveCommand is reserve without the flags that make it recur.
func NewSingleReserveCommand(a *app.App) *cobra.Command {
	return newBaseReserveCommand(a, &reserveOptions{})
}

func newBaseReserveCommand(a *app.App, r *reserveOptions) *cobra.Command {
	c := &cobra.Command{
		Use:   "reserve --gpus N (--pool P | --model M | --region R …) (--at TIME | --not-before TIME) --for DURATION",
		Short: "Have GPUs warm at a given time",
		Long:  "Have GPUs warm at a given time.\n\n" + reserveText,
		Args:  flags.NoArgs, Annotations: map[string]string{app.Waits: "yes", "noun": "reservations"},
		RunE: func(cmd *cobra.Command, _ []string) error { return runReserve(a, cmd, *r) },
	}
	f := c.Flags()
	f.IntVar(&r.gpus, "gpus", 0, "how many")
	flags.BindLayout(f, &r.layout)
	f.StringVar(&r.model, "model", "", "GPU model, such as a100")
	f.StringVar(&r.pool, "pool", "", "id or name of a pool (default the cheapest that fits and can serve)")
	flags.BindNeeds(f, &r.needs)
	f.StringVar(&r.name, "name", "", "what to call it")
	f.StringVar(&r.at, "at", "", "start: 'tomorrow 09:00', 'mon 14:30', '2026-11-20 09:00', 'in 2h'")
	f.Var(&r.length, "for", "how long, such as 3h")
	f.StringVar(&r.zone, "tz", "", "time zone of --at, such as Europe/Berlin (default the machine's)")
	f.StringVar(&r.onFull, "on-full", "fail", "what to do when there is no room: fail or queue")
	f.StringVar(&r.notBefore, "not-before", "",
		"instead of --at: the earliest start; books the first time with room")
	f.StringVar(&r.notAfter, "not-after", "", "instead of --at, alone or with --not-before: the latest end")
	f.StringVar(&r.workload, "workload", "", "online or batch (default online)")
	f.StringVar(&r.class, "class", "", "guaranteed or speculative (default guaranteed)")
	f.StringVar(&r.forJobs, "for-jobs", "",
		"whose jobs claim it by themselves: none, mine or organization (default mine)")
	return c
}

func runReserve(a *app.App, cmd *cobra.Command, r reserveOptions) error {
	flexible := r.notBefore != "" || r.notAfter != ""
	if flexible && (r.at != "" || r.every != "") {
		return exit.UsageErrorf("forewarm reserve --help",
			"--not-before and --not-after replace --at, and cannot be used with --every")
	}
	if err := cmp.Or(flags.NeedGPUs(cmd), flags.Need(cmd, "for")); err != nil {
		return err
	}
	if !flexible {
		if err := flags.Need(cmd, "at"); err != nil {
			return err
		}
	}
	if r.onFull != "fail" && r.onFull != "queue" {
		return exit.UsageErrorf("forewarm reserve --help", "--on-full %q is neither fail nor queue", r.onFull)
	}
	zone, err := a.Zone(cmd, r.zone)
	if err != nil {
		return err
	}
	if flexible {
		return reserveWithin(a, cmd, r, zone)
	}
	start, err := when.ParseMoment(r.at, a.Clock.Now(), zone)
	if err != nil {
		return when.BlameFlag(cmd, "at", err)
	}
	if r.every != "" && r.forJobs != "" {
		return exit.UsageErrorf("forewarm reserve --help",
			"--for-jobs cannot be used with --every: what a schedule reserves is for the jobs of the organization")
	}
	if r.every != "" {
		if a.Flags.Wait {
			e := exit.UsageErrorf(flags.TypedLine(cmd, "wait", "timeout"),
				"--wait cannot be used with --every: each date of a schedule has a reservation of its own")
			e.Detail = []string{"Leave --wait out, and wait for the reservation of a date: forewarm wait RESERVATION"}
			return e
		}
		return reserveRecurring(a, cmd, r, start, zone)
	}
	for _, flag := range []string{"skip", "dst"} {
		if cmd.Flags().Changed(flag) {
			return exit.UsageErrorf("forewarm reserve --help", "--%s is only for --every", flag)
		}
	}
	return reserveOnce(a, cmd, r, start, zone)
}

func reserveOnce(a *app.App, cmd *cobra.Command, r reserveOptions, start when.Moment, zone *time.Location) error {
	end := start.At.Add(r.length.Duration())
	a.Say(cmd, "Read as   %s", when.DescribeWindow(start.At, end, zone))
	a.SayNote(cmd, start.FoldWarning(zone))
	in := r.buildRequest()
	in.Start, in.End = start.At.UTC(), end.UTC()
	return bookReservation(a, cmd, in)
}

// reserveWithin books the earliest time at which there is room.
func reserveWithin(a *app.App, cmd *cobra.Command, r reserveOptions, zone *time.Location) error {
	in := r.buildRequest()
	in.MinDurationSeconds, in.MaxDurationSeconds = r.length.Seconds(), r.length.Seconds()
	in.StartTimeNotEarlierThan = a.Clock.Now().UTC()
	for _, bound := range []struct {
		flag, text string
		to         *time.Time
	}{{"not-before", r.notBefore, &in.StartTimeNotEarlierThan}, {"not-after", r.notAfter, &in.EndTimeNotLaterThan}} {
		if bound.text == "" {
			continue
		}
		t, err := when.Parse(bound.text, a.Clock.Now(), zone)
		if err != nil {
			return when.BlameFlag(cmd, bound.flag, err)
		}
		*bound.to = t.UTC()
	}
	a.Say(cmd, "Read as   %s", when.DescribeBounds(in.StartTimeNotEarlierThan, in.EndTimeNotLaterThan, zone))
	return bookReservation(a, cmd, in)
}

// buildRequest is what the flags ask for, without its time.
func (r reserveOptions) buildRequest() contract.ReservationCreate {
	return contract.ReservationCreate{Pool: r.pool, Model: r.model, Needs: r.needs, GPUs: r.gpus, Layout: r.layout,
		Class: r.class, Name: r.name, Workload: r.workload, ForJobs: r.forJobs,
		Queue: r.onFull == "queue"}
}

func bookReservation(a *app.App, cmd *cobra.Command, in contract.ReservationCreate) error {
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	switch {
	case a.Planning:
		return plans.Make(a, cmd, api, contract.PlanReserve, in)
	case a.Explaining:
		return explain.Ask(a, cmd, api, contract.ExplainRequest{Reservation: &in})
	}
	got, err := api.Reserve(a.WithIdempotencyKey(cmd.Context()), in, client.Options{DryRun: a.Flags.DryRun})
	if err != nil {
		return err
	}
	if a.Flags.DryRun {
		a.Say(cmd, "Dry run: nothing was changed.")
		return output.One(a, cmd, View, got)
	}
	if a.Flags.Wait {
		if got, err = await.Reservation(a, cmd, api, got); err != nil {
			return err
		}
	}
	if err := output.One(a, cmd, View, got); err != nil {
		return err
	}
	a.Say(cmd, "%s", plans.AfterReserving(cmd.Context(), api, got))
	return nil
}
