package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// overview is one screen.
type overview struct {
	Server  string           `json:"server"`
	Version contract.Build   `json:"version"`
	Whoami  *contract.Whoami `json:"whoami,omitempty"`
	Report  *contract.Report `json:"report,omitempty"`
	Prewarm contract.Prewarm `json:"prewarm"`
	Pools   []contract.Pool  `json:"pools"`
	GPUs    []supply         `json:"gpus"`
	Waiting []waiter         `json:"waiting"`
}

// supply is what becomes of a pool's GPUs now.
type supply struct {
	Pool    string `json:"pool"`
	Model   string `json:"model"`
	State   string `json:"state"`
	Up      int    `json:"up"`      // of nodes that are ready
	Free    int    `json:"free"`    // of them, those that nobody holds and nothing is kept for
	Held    int    `json:"held"`    // by anybody
	Booting int    `json:"booting"` // of nodes on their way
	Booked  int    `json:"booked"`  // by reservations of the day to come that the key may see and nobody has claimed yet
	Most    int    `json:"most"`    // what the pool may have

	simulated bool
}

var supplyView = view[supply]{
	name: func(x supply) string { return x.Pool },
	columns: []column[supply]{
		{head: "POOL", cell: func(x supply) string { return markSimulated(x.Pool, x.simulated) }},
		{head: "MODEL", cell: func(x supply) string { return x.Model }},
		{head: "UP", right: true, cell: func(x supply) string { return strconv.Itoa(x.Up) }},
		{head: "FREE", right: true, cell: func(x supply) string { return strconv.Itoa(x.Free) }},
		{head: "HELD", right: true, cell: func(x supply) string { return strconv.Itoa(x.Held) }},
		{head: "BOOTING", right: true, cell: func(x supply) string { return strconv.Itoa(x.Booting) }},
		{head: "BOOKED 24H", right: true, cell: func(x supply) string { return strconv.Itoa(x.Booked) }},
		{head: "MOST", right: true, cell: func(x supply) string { return strconv.Itoa(x.Most) }},
		{head: "STATE", cell: func(x supply) string { return x.State }},
	},
}

// waiter is what waits, and why.
type waiter struct {
	ID      string                 `json:"id"`
	Name    string                 `json:"name,omitempty"`
	Pool    string                 `json:"pool,omitempty"`
	GPUs    int                    `json:"gpus"`
	State   string                 `json:"state"`
	Since   time.Time              `json:"since"`
	Wait    *contract.WaitEstimate `json:"wait,omitempty"`
	Because string                 `json:"because,omitempty"`
}

func waiterView(now time.Time) view[waiter] {
	return view[waiter]{
		name: func(x waiter) string { return x.ID },
		columns: []column[waiter]{
			{head: "WAITS", cell: func(x waiter) string { return firstNonEmpty(x.Name, x.ID) }},
			{head: "GPUS", right: true, cell: func(x waiter) string { return strconv.Itoa(x.GPUs) }},
			{head: "POOL", cell: func(x waiter) string { return orDash(x.Pool) }},
			{head: "FOR", right: true,
				cell: func(x waiter) string { return formatDuration(now.Sub(x.Since).Round(time.Second)) }},
			{head: "READY IN", cell: func(x waiter) string { return readyIn(x.Wait) }},
			{head: "WHY", cell: func(x waiter) string { return orDash(x.Because) }},
		},
	}
}

// readyIn is an estimate in short: the middle, and where it is four times of five.
func readyIn(x *contract.WaitEstimate) string {
	if x == nil {
		return "-"
	}
	at := func(s float64) string {
		return formatDuration(time.Duration(s * float64(time.Second)).Round(time.Second))
	}
	return fmt.Sprintf("%s (%s–%s)", at(x.P50Seconds), at(x.P10Seconds), at(x.P90Seconds))
}

func (a *app) newStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "See GPUs, the two numbers and what waits on one screen", Args: noArgs,
		Example: "  forewarm status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.fetchOverview(cmd)
			if err != nil {
				return err
			}
			if a.flags.output != table && a.flags.output != wide {
				return showOne(a, cmd, view[overview]{name: func(o overview) string { return o.Server }}, o)
			}
			return a.showOverview(cmd, o)
		},
	}
}

func (a *app) showOverview(cmd *cobra.Command, o overview) error {
	w := cmd.OutOrStdout()
	_, _ = fmt.Fprintf(w, "Forewarm %s at %s · %s · role %s\n\n", plainText(markSimulated(o.Version.Version, o.Version.Simulation)),
		plainText(o.Server),
		plainText(orDash(firstNonEmpty(o.Whoami.OrganizationName, o.Whoami.OrganizationID))), o.Whoami.Role)
	if err := showOne(a, cmd, view[contract.Report]{columns: reportView.columns[:2]}, *o.Report); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(w)
	for _, p := range o.Prewarm.Pauses {
		_, _ = fmt.Fprintf(w, "%s.\n\n", plainText(pauseText(p)))
	}
	if len(o.GPUs) == 0 {
		a.say(cmd, "There is no pool yet. Next:  forewarm pools create --help")
		return nil
	}
	if err := showList(a, cmd, supplyView, o.GPUs); err != nil {
		return err
	}
	if len(o.Waiting) == 0 {
		_, err := fmt.Fprintln(w, "\nNobody waits.")
		return err
	}
	_, _ = fmt.Fprintln(w)
	if err := showList(a, cmd, waiterView(a.clock.Now()), o.Waiting); err != nil {
		return err
	}
	a.say(cmd, "Next:  forewarm explain %s", o.Waiting[0].ID)
	return nil
}

func (a *app) fetchOverview(cmd *cobra.Command) (overview, error) {
	t, err := a.findTarget()
	if err != nil {
		return overview{}, err
	}
	o := overview{Server: t.Server, Pools: []contract.Pool{}, GPUs: []supply{}, Waiting: []waiter{}}
	api, err := a.newClient()
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
	return o, a.fetchCapacity(cmd.Context(), api, &o)
}

// fetchCapacity reads what there is now.
func (a *app) fetchCapacity(ctx context.Context, api *client.Client, o *overview) error {
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
		o.GPUs = append(o.GPUs, supplyOf(p, pausedFor(o.Prewarm), promised, a.clock.Now().Add(day)))
	}
	o.Waiting = append(o.Waiting, findWaiters(held, promised)...)
	return explainWaiters(ctx, api, o.Waiting)
}

func supplyOf(p contract.Pool, paused string, promised []contract.Reservation, until time.Time) supply {
	s := supply{Pool: p.Name, Model: p.Model, State: poolState(p, paused), Most: p.MaxNodes * p.GPUsPerNode,
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

// findWaiters are what has no GPUs though it should, the longest first.
func findWaiters(held []contract.Allocation, promised []contract.Reservation) []waiter {
	var all []waiter
	for _, x := range held {
		if x.State == "pending" {
			all = append(all, waiter{ID: x.ID, Name: x.Name, Pool: firstNonEmpty(x.PoolName, x.PoolID), GPUs: x.GPUs,
				State: x.State, Since: x.RequestedAt, Wait: x.Wait})
		}
	}
	for _, r := range promised {
		if r.State == "waitlisted" || r.Degraded {
			all = append(all, waiter{ID: r.ID, Name: r.Name, Pool: firstNonEmpty(r.PoolName, r.PoolID), GPUs: r.GPUs,
				State: r.State, Since: r.CreatedAt, Wait: r.Wait})
		}
	}
	slices.SortStableFunc(all,
		func(x, y waiter) int { return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID)) })
	return all
}

// explained is how many of those that wait are asked why: a screen has so many
// lines.
const explained = 10

// explainWaiters asks why the first of them wait.
func explainWaiters(ctx context.Context, api *client.Client, all []waiter) error {
	for i := range all[:min(len(all), explained)] {
		x, err := explanationRoute(api, all[i].ID)(ctx, all[i].ID)
		if err != nil {
			return err
		}
		if all[i].Because = x.Summary; len(x.Blockers) > 0 {
			all[i].Because = x.Blockers[0].Message
		}
		if all[i].Wait == nil {
			all[i].Wait = x.Wait
		}
	}
	return nil
}
