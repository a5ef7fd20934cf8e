package pools

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/cli/plans"
	"github.com/forewarm/forewarm/contract"
)

// NewEditCommand is the command pools edit.
func NewEditCommand(a *app.App) *cobra.Command {
	var minNodes, maxNodes, cpus, memory, share, creates int
	var price, holder, access, isolation, driver string
	var holders []string
	var hold, lease, creating flags.Span
	var idle, cleaning, warn, reclaim flags.Duration
	var paused, borrow, force bool
	c := &cobra.Command{
		Use: "edit POOL", Short: "Change a pool (operators)", Args: flags.ExactArgs("POOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var patch contract.PoolPatch
			flags.SetIfGiven(cmd, "min-nodes", &patch.MinNodes, minNodes)
			flags.SetIfGiven(cmd, "max-nodes", &patch.MaxNodes, maxNodes)
			flags.SetIfGiven(cmd, "price", &patch.PricePerNodeHour, flags.ParseDollars(price))
			flags.SetIfGiven(cmd, "warm-hold", &patch.WarmHoldSeconds, hold.Seconds())
			flags.SetIfGiven(cmd, "idle-release", &patch.IdleReleaseSeconds, idle.Seconds())
			flags.SetIfGiven(cmd, "max-lease", &patch.MaxLeaseSeconds, lease.Seconds())
			flags.SetIfGiven(cmd, "cleaning", &patch.CleaningSeconds, cleaning.Seconds())
			flags.SetIfGiven(cmd, "idle-warn-after", &patch.IdleWarnAfter, warn.Seconds())
			flags.SetIfGiven(cmd, "idle-reclaim-after", &patch.IdleReclaimAfter, reclaim.Seconds())
			flags.SetIfGiven(cmd, "max-creates", &patch.MaxCreates, creates)
			flags.SetIfGiven(cmd, "create-window", &patch.CreateWindow, creating.Seconds())
			flags.SetIfGiven(cmd, "node-cpus", &patch.NodeCPUs, cpus)
			flags.SetIfGiven(cmd, "node-memory-mib", &patch.NodeMemoryMiB, memory)
			flags.SetIfGiven(cmd, "online-share", &patch.OnlineShare, share)
			flags.SetIfGiven(cmd, "borrow-idle", &patch.BorrowIdle, borrow)
			flags.SetIfGiven(cmd, "paused", &patch.Paused, paused)
			flags.SetIfGiven(cmd, "default-organization", &patch.DefaultHolder, holder)
			flags.SetIfGiven(cmd, "access", &patch.Access, access)
			flags.SetIfGiven(cmd, "isolation", &patch.Isolation, isolation)
			flags.SetIfGiven(cmd, "min-driver", &patch.MinDriver, driver)
			read, err := parseHolders(holders)
			if err != nil {
				return err
			}
			flags.SetIfGiven(cmd, "holder", &patch.Holders, read)
			if patch == (contract.PoolPatch{}) {
				return exit.UsageErrorf(cmd.CommandPath()+" --help", "there is nothing to change")
			}
			patch.Force = force
			return patchPool(a, cmd, args[0], func(p contract.Pool) (contract.PoolPatch, error) {
				return patch, checkMinimum(cmd, p, patch)
			})
		},
	}
	f := c.Flags()
	f.IntVar(&minNodes, "min-nodes", 0, "nodes to keep at all times")
	f.IntVar(&maxNodes, "max-nodes", 0, "most nodes at once")
	f.StringVar(&price, "price", "", "USD of one node for one hour")
	f.Var(&hold, "warm-hold", "how long a warm GPU waits for the owner of its reservation")
	f.Var(&idle, "idle-release", "how long an idle node is kept")
	f.Var(&lease, "max-lease", "longest lease")
	f.Var(&cleaning, "cleaning", "how long a node is kept free between two bookings")
	f.Var(&warn, "idle-warn-after", warnHelp)
	f.Var(&reclaim, "idle-reclaim-after", reclaimHelp)
	f.IntVar(&creates, "max-creates", 0,
		"most nodes to request in --create-window that have served nobody; 0: three for each node, at "+
			"least 10")
	f.Var(&creating, "create-window", "the period that --max-creates counts in")
	f.IntVar(&cpus, "node-cpus", 0, "CPUs of one node")
	f.IntVar(&memory, "node-memory-mib", 0, "memory of one node")
	f.IntVar(&share, "online-share", 0, "thousandths of the GPUs for online work, the rest for batch; 0: not split")
	f.BoolVar(&borrow, "borrow-idle", false, "a workload may use what the other leaves free")
	f.StringArrayVar(&holders, "holder", nil, holderHelp)
	f.StringVar(&holder, "default-organization", "", "of an observed pool, whose work is that no --holder names")
	f.StringVar(&access, "access", "", accessHelp)
	f.StringVar(&isolation, "isolation", "", isolationHelp)
	f.StringVar(&driver, "min-driver", "", driverHelp+`; "" for any`)
	f.BoolVar(&force, "force", false,
		"even if a workload has booked more than its new share, or promises lose their place")
	f.BoolVar(&paused, "paused", false, "switch speculative pre-warming off (true) or on (false)")
	return c
}

// checkMinimum refuses fewer nodes than the pool keeps at all times, unless that is changed, too.
func checkMinimum(cmd *cobra.Command, p contract.Pool, patch contract.PoolPatch) error {
	if patch.MaxNodes == nil || patch.MinNodes != nil || *patch.MaxNodes < 1 || p.MinNodes <= *patch.MaxNodes {
		return nil
	}
	return exit.UsageErrorf(fmt.Sprintf("%s --min-nodes %d", flags.TypedLine(cmd), *patch.MaxNodes),
		"--max-nodes %d: the pool keeps %s at all times (min_nodes); add --min-nodes %[1]d", *patch.MaxNodes,
		format.Count(p.MinNodes, "node"))
}

// patchPool changes the version of the pool that it has just read, so that a
// change made meanwhile is a conflict and not overwritten.
func patchPool(a *app.App, cmd *cobra.Command, ref string,
	change func(contract.Pool) (contract.PoolPatch, error)) error {
	api, err := a.NewClient()
	if err != nil {
		return err
	}
	pool, err := api.Pool(cmd.Context(), ref)
	if err != nil {
		return err
	}
	patch, err := change(pool)
	if err != nil {
		return err
	}
	if a.PreviewsOnly() {
		return plans.Make(a, cmd, api, contract.PlanPool,
			contract.PlannedPool{PoolID: pool.ID, Version: pool.Version, PoolPatch: patch})
	}
	got, err := api.PatchPool(a.WithIdempotencyKey(cmd.Context()), pool.ID, pool.Version, patch)
	if err != nil {
		return err
	}
	if got.GPUCounts == nil {
		got.GPUCounts = pool.GPUCounts
	}
	return output.One(a, cmd, poolView, got)
}
