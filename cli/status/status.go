// Package status shows an installation on one screen.
package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/pools"
	"github.com/forewarm/forewarm/cli/prewarm"
	"github.com/forewarm/forewarm/cli/reports"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NewCommand is the command status.
func NewCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "See GPUs, the two numbers and all waits on one screen", Args: flags.NoArgs,
		Example: "  forewarm status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := fetchOverview(a, cmd)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.Table && a.Flags.Output != output.Wide {
				return output.One(a, cmd, output.View[overview]{Name: func(o overview) string { return o.Server }}, o)
			}
			return showOverview(a, cmd, o)
		},
	}
}

func showOverview(a *app.App, cmd *cobra.Command, o overview) error {
	w := cmd.OutOrStdout()
	_, _ = fmt.Fprintf(w, "Forewarm %s at %s · %s · role %s\n\n",
		format.Plain(format.MarkSimulated(o.Version.Version, o.Version.Simulation)), format.Plain(o.Server),
		o.organization(), o.Whoami.Role)
	numbers := output.View[contract.Report]{Columns: reports.View.Columns[:2]}
	if err := output.One(a, cmd, numbers, *o.Report); err != nil {
		return err
	}
	if text := format.JobCounts(o.Jobs); text != "" {
		_, _ = fmt.Fprintf(w, "JOBS            %s\n", text)
	}
	_, _ = fmt.Fprintln(w)
	for _, p := range o.Prewarm.Pauses {
		_, _ = fmt.Fprintf(w, "%s.\n\n", format.Plain(prewarm.PauseText(p)))
	}
	if len(o.GPUs) == 0 {
		a.Say(cmd, "There is no pool yet. Next:  forewarm pools create --help")
		return nil
	}
	if err := output.List(a, cmd, supplyView, o.GPUs); err != nil {
		return err
	}
	if len(o.Waiting) == 0 {
		_, err := fmt.Fprintf(w, "\n%s\n", o.whoWaits())
		if o.Jobs.Pending+o.OthersPending > 0 {
			a.Say(cmd, "Next:  forewarm queue")
		}
		return err
	}
	_, _ = fmt.Fprintln(w)
	if err := output.List(a, cmd, waiterView(a.Clock.Now()), o.Waiting); err != nil {
		return err
	}
	a.Say(cmd, "Next:  forewarm explain %s", o.Waiting[0].ID)
	return nil
}

// organization is whose key it is, for a terminal.
func (o overview) organization() string {
	return format.Plain(format.OrDash(cmp.Or(o.Whoami.OrganizationName, o.Whoami.OrganizationID)))
}

// whoWaits says who waits where neither an allocation nor a reservation does.
func (o overview) whoWaits() string {
	switch others := o.OthersPending; {
	case o.Jobs.Pending > 0 && others > 0:
		return fmt.Sprintf("Nobody waits but jobs: %d of your organization, %d of others.", o.Jobs.Pending, others)
	case o.Jobs.Pending > 0:
		return "Nobody waits but jobs."
	case others == 1:
		return fmt.Sprintf("Nobody of %s waits. 1 job of another organization does.", o.organization())
	case others > 1:
		return fmt.Sprintf("Nobody of %s waits. %d jobs of other organizations do.", o.organization(), others)
	default:
		return "Nobody waits."
	}
}

func fetchOverview(a *app.App, cmd *cobra.Command) (overview, error) {
	t, err := a.Target()
	if err != nil {
		return overview{}, err
	}
	o := overview{Server: t.Server, Pools: []contract.Pool{}, GPUs: []supply{}, Waiting: []waiter{}}
	api, err := a.NewClient()
	if err != nil {
		return o, err
	}
	if o.Version, err = api.Version(cmd.Context()); err != nil {
		return o, err
	}
	who, err := api.Whoami(cmd.Context())
	if err != nil {
		return o, err
	}
	report, err := api.Report(cmd.Context(), time.Time{}, time.Time{})
	if err != nil {
		return o, err
	}
	o.Whoami, o.Report = &who, &report
	own := client.JobFilter{Filter: client.Filter{Organization: who.OrganizationID}}
	if o.Jobs, err = api.CountJobs(cmd.Context(), own); err != nil {
		return o, err
	}
	if who.Role == "operator" {
		all, err := api.CountJobs(cmd.Context(), client.JobFilter{})
		if err != nil {
			return o, err
		}
		o.OthersPending = max(0, all.Pending-o.Jobs.Pending) // they are counted one after the other
	}
	return o, fetchCapacity(cmd.Context(), a, api, &o)
}

// fetchCapacity reads what there is now.
func fetchCapacity(ctx context.Context, a *app.App, api *client.Client, o *overview) error {
	pools, err := client.All(api.Pools(ctx, client.Filter{}))
	if err != nil {
		return err
	}
	held, err := client.All(api.Allocations(ctx, client.Filter{}))
	if err != nil {
		return err
	}
	promised, err := client.All(api.Reservations(ctx, client.Filter{}))
	if err != nil {
		return err
	}
	if o.Prewarm, err = api.Prewarm(ctx); err != nil {
		return err
	}
	o.Pools = append(o.Pools, pools...)
	for _, p := range pools {
		o.GPUs = append(o.GPUs, supplyOf(p, prewarm.PausedFor(o.Prewarm), promised, a.Clock.Now().Add(24*time.Hour)))
	}
	o.Waiting = append(o.Waiting, findWaiters(held, promised)...)
	return explainWaiters(ctx, api, o.Waiting)
}

func supplyOf(p contract.Pool, paused string, promised []contract.Reservation, until time.Time) supply {
	s := supply{Pool: p.Name, Model: p.Model, State: pools.State(p, paused), Most: p.MaxNodes * p.GPUsPerNode,
		simulated: p.Simulated}
	if n := p.GPUCounts; n != nil {
		s.Up, s.Free, s.Held, s.Booting = n.Free+n.Held+n.Booked, n.Free, n.Held, n.Coming
	}
	for _, r := range promised {
		if r.PoolID == p.ID && r.Start.Before(until) &&
			slices.Contains([]string{"booked", "warming", "ready"}, r.State) {
			s.Booked += r.GPUs
		}
	}
	return s
}
