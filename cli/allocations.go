package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var allocationView = view[contract.Allocation]{
	name: func(x contract.Allocation) string { return x.ID },
	columns: []column[contract.Allocation]{
		{head: "ID", cell: func(x contract.Allocation) string { return x.ID }},
		{head: "NAME", cell: func(x contract.Allocation) string { return orDash(x.Name) }},
		{head: "STATE", cell: func(x contract.Allocation) string { return x.State }},
		{head: "GPUS", right: true, cell: func(x contract.Allocation) string { return strconv.Itoa(x.GPUs) }},
		{head: "POOL", cell: func(x contract.Allocation) string { return firstNonEmpty(x.PoolName, x.PoolID) }},
		{head: "SHAPE", cell: func(x contract.Allocation) string {
			return shapeText(contract.Shape{GPUs: x.GPUs, Nodes: x.Nodes, GPUsPerNode: x.GPUsPerNode})
		}, wide: true},
		{head: "WAITED", right: true, cell: func(x contract.Allocation) string { return waitedText(x) }},
		{head: "LEASE UNTIL", cell: func(x contract.Allocation) string { return formatTime(x.LeaseUntil) }},
		{head: "COST", right: true, cell: func(x contract.Allocation) string { return formatMoney(x.EstimatedCost) }},
		{head: "REQUESTED", cell: func(x contract.Allocation) string { return formatTime(x.RequestedAt) }, wide: true},
		{head: "ENDED", cell: func(x contract.Allocation) string { return formatTime(x.EndedAt) }, wide: true},
		{head: "CLAIMED", cell: func(x contract.Allocation) string { return orDash(strings.Join(x.ReservationIDs, " ")) },
			wide: true},
		{head: "HELD BY", cell: func(x contract.Allocation) string { return orDash(firstNonEmpty(x.HeldByName, x.HeldBy)) },
			wide: true},
		{head: "ORGANIZATION",
			cell: func(x contract.Allocation) string { return firstNonEmpty(x.OrganizationName, x.OrganizationID) }, wide: true},
		{head: "DEVICES", cell: func(x contract.Allocation) string { return devicesText(x) }, wide: true},
		{head: "REASON", cell: func(x contract.Allocation) string { return orDash(x.Reason) }},
	},
}

func waitedText(x contract.Allocation) string {
	if x.WaitSeconds == nil {
		return "-"
	}
	return strconv.FormatFloat(*x.WaitSeconds, 'f', 1, 64) + "s"
}

// devicesText lists what is held, node by node.
func devicesText(x contract.Allocation) string {
	var nodes []string
	uuids := map[string]string{}
	for _, d := range x.Devices {
		if _, seen := uuids[d.NodeID]; !seen {
			nodes = append(nodes, d.NodeID)
		}
		uuids[d.NodeID] += " " + d.UUID
	}
	for i, n := range nodes {
		nodes[i] = n + ":" + uuids[n]
	}
	return orDash(strings.Join(nodes, "; "))
}

func (a *app) newAllocateCommand() *cobra.Command {
	var in contract.AllocationCreate
	var lease span
	c := &cobra.Command{
		Use: "allocate --gpus N (--pool P | --model M | --region R …)", Short: "Get GPUs now, under a lease",
		Long: `Get GPUs now, under a lease.

With --wait a full pool is asked again until --timeout, and who asks at the right moment gets the GPUs: it is no place in
a queue. forewarm reserve --on-full queue keeps one.`,
		Args: noArgs, Annotations: map[string]string{waits: "yes", "noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needGPUs(cmd); err != nil {
				return err
			}
			in.LeaseSeconds = lease.seconds()
			api, err := a.newClient()
			if err != nil {
				return err
			}
			switch {
			case a.planning:
				return a.makePlan(cmd, api, contract.PlanAllocate, in)
			case a.asking:
				return a.askAbout(cmd, api, contract.ExplainRequest{Allocation: &in})
			}
			if lease.std() > longLease {
				if err := a.agreeToCost(cmd, args, func(ctx context.Context) (contract.Allocation, error) {
					return api.Allocate(ctx, in, client.Options{DryRun: true})
				}); err != nil {
					return err
				}
			}
			got, err := a.allocateGPUs(cmd, api, in)
			if err != nil {
				return err
			}
			return a.showAllocated(cmd, api, got)
		},
	}
	f := c.Flags()
	f.IntVar(&in.GPUs, "gpus", 0, "how many")
	layoutFlags(f, &in.Layout)
	f.StringVar(&in.Model, "model", "", "GPU model, such as a100")
	f.StringVar(&in.Pool, "pool", "",
		"id or name of a pool (default any that fits: warm ones first, then the cheapest)")
	needsFlags(f, &in.Needs)
	f.StringVar(&in.Workload, "workload", "", "online or batch (default online)")
	f.Var(&lease, "for", "length of the lease (default 1h)")
	f.StringVar(&in.Name, "name", "", "what to call it")
	return c
}

// showAllocated waits, if it was asked to, and shows an allocation.
func (a *app) showAllocated(cmd *cobra.Command, api *client.Client, got contract.Allocation) error {
	if a.flags.dryRun {
		a.say(cmd, "Dry run: nothing was changed.")
		return showOne(a, cmd, allocationView, got)
	}
	if a.flags.wait {
		var err error
		if got, err = a.waitAllocation(cmd, api, got); err != nil {
			return err
		}
	}
	if err := showOne(a, cmd, allocationView, got); err != nil {
		return err
	}
	a.say(cmd, "%s", nextCommands(got))
	return nil
}

func nextCommands(x contract.Allocation) string {
	switch x.State {
	case "active":
		return "Next:  forewarm extend " + x.ID + " --by 1h  ·  forewarm release " + x.ID
	case "pending":
		return "Next:  forewarm wait " + x.ID + "  ·  forewarm release " + x.ID
	default:
		return "Next:  forewarm allocations list"
	}
}

func (a *app) newReleaseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "release ALLOCATION", Short: "Give GPUs back", Args: exactArgs("ALLOCATION"),
		Annotations: map[string]string{"noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.allocationID(cmd, args[0])
			if err != nil {
				return err
			}
			if a.previewsOnly() {
				return a.makePlan(cmd, api, contract.PlanRelease, contract.PlannedRelease{AllocationID: id})
			}
			got, err := api.Release(a.withIdempotencyKey(cmd.Context()), id)
			if err != nil {
				return err
			}
			return showOne(a, cmd, allocationView, got)
		},
	}
}

func (a *app) newExtendCommand() *cobra.Command {
	var by span
	c := &cobra.Command{
		Use: "extend ALLOCATION --by DURATION", Short: "Prolong a lease", Args: exactArgs("ALLOCATION"),
		Long: `Prolong a lease. What is added counts for the key that holds it, whose caps hold, and in the budgets of the day and the month in
which the lease began.

A key that has caps extends only leases that count for these: its own, and those of keys that were made with it.`,
		Annotations: map[string]string{"noun": "allocations"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needFlags(cmd, "by"); err != nil {
				return err
			}
			api, id, err := a.allocationID(cmd, args[0])
			if err != nil {
				return err
			}
			extend := func(dry bool) func(context.Context) (contract.Allocation, error) {
				return func(ctx context.Context) (contract.Allocation, error) {
					return api.Extend(ctx, id, by.std(), client.Options{DryRun: dry})
				}
			}
			if err := a.agreeToCost(cmd, args, extend(true)); err != nil {
				return err
			}
			got, err := extend(a.flags.dryRun)(a.withIdempotencyKey(cmd.Context()))
			if err != nil {
				return err
			}
			if a.flags.dryRun {
				a.say(cmd, "Dry run: nothing was changed.")
			}
			return showOne(a, cmd, allocationView, got)
		},
	}
	c.Flags().Var(&by, "by", "how much longer, such as 1h")
	return c
}

func (a *app) newAllocationsCommand() *cobra.Command {
	show := &cobra.Command{
		Use: "show ALLOCATION", Short: "Show one allocation", Args: exactArgs("ALLOCATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, id, err := a.allocationID(cmd, args[0])
			if err != nil {
				return err
			}
			got, err := api.Allocation(cmd.Context(), id)
			if err != nil {
				return err
			}
			return showOne(a, cmd, allocationView, got)
		},
	}
	return newGroupCommand("allocations", "See what is held now",
		newListBookingsCommand(a, "allocations", allocationView, (*client.Client).Allocations), show)
}

// explanationRoute is the route that explains things of an id's kind.
func explanationRoute(api *client.Client, id string) func(context.Context, string) (contract.Explanation, error) {
	switch {
	case strings.HasPrefix(id, "rsv_"):
		return api.ExplainReservation
	case strings.HasPrefix(id, "sch_"):
		return api.ExplainSchedule
	case strings.HasPrefix(id, "nod_"):
		return api.ExplainNode
	default:
		return api.ExplainAllocation
	}
}
