package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

var poolView = view[contract.Pool]{
	name: func(x contract.Pool) string { return x.Name },
	columns: []column[contract.Pool]{
		{head: "NAME", cell: func(x contract.Pool) string { return markSimulated(x.Name, x.Simulated) }},
		{head: "MODEL", cell: func(x contract.Pool) string { return x.Model }},
		{head: "GPUS/NODE", right: true, cell: func(x contract.Pool) string { return strconv.Itoa(x.GPUsPerNode) }},
		{head: "MEMORY", right: true, cell: func(x contract.Pool) string { return formatGiB(x.GPUMemoryMiB) }},
		{head: "NODES", right: true,
			cell: func(x contract.Pool) string { return fmt.Sprintf("%d–%d", x.MinNodes, x.MaxNodes) }},
		{head: "FREE GPUS", right: true, cell: freeOf},
		{head: "$/NODE-H", right: true, cell: func(x contract.Pool) string { return formatMoney(x.PricePerNodeHour) }},
		{head: "BOOT P95", right: true,
			cell: func(x contract.Pool) string { return fmt.Sprintf("%.0fs", x.BootP95Seconds) }},
		{head: "STATE", cell: func(x contract.Pool) string { return poolState(x, "") }},
		{head: "ID", cell: func(x contract.Pool) string { return x.ID }, wide: true},
		{head: "LAST FAILURE", cell: func(x contract.Pool) string { return failureText(x.Failing) }, wide: true},
		{head: "SOURCES", cell: sourcesOf, wide: true},
		{head: "WARM HOLD", right: true, cell: func(x contract.Pool) string { return formatSeconds(x.WarmHoldSeconds) },
			wide: true},
		{head: "IDLE RELEASE", right: true, cell: func(x contract.Pool) string { return formatSeconds(x.IdleReleaseSeconds) },
			wide: true},
		{head: "MAX LEASE", right: true, cell: func(x contract.Pool) string { return formatSeconds(x.MaxLeaseSeconds) },
			wide: true},
		{head: "CLEANING", right: true, cell: func(x contract.Pool) string { return formatSeconds(x.CleaningSeconds) },
			wide: true},
		{head: "MAX CREATES", right: true, cell: func(x contract.Pool) string {
			return fmt.Sprintf("%d in %s", x.MaxCreates, formatSeconds(x.CreateWindow))
		}, wide: true},
		{head: "ONLINE/BATCH", cell: splitText, wide: true},
	},
}

// failureText says what fails again and again.
func failureText(f *contract.Failure) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%d in a row, last %s: %s", f.Count, formatTime(f.LastAt), f.Message)
}

// freeOf says how many GPUs of a pool's live nodes are free.
func freeOf(x contract.Pool) string {
	if x.GPUCounts == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", x.GPUCounts.Free, x.GPUCounts.Total)
}

// splitText renders how a pool is shared between online and batch work.
func splitText(x contract.Pool) string {
	if x.OnlineShare == 0 {
		return "not split"
	}
	text := fmt.Sprintf("%.1f%%/%.1f%%", float64(x.OnlineShare)/10, float64(1000-x.OnlineShare)/10)
	if x.BorrowIdle {
		text += " borrowing"
	}
	return text
}

// sourcesOf says what is known of each source.
func sourcesOf(x contract.Pool) string {
	var all []string
	for _, s := range x.Sources {
		text := fmt.Sprintf("%s %s boots %.0fs/%.0fs (%d seen)", sourceText(s.Provisioner, s.Region, s.InstanceType),
			formatMoney(s.PricePerNodeHour),
			s.BootP50Seconds, s.BootP95Seconds, s.BootSamples)
		if s.Stopped != "" {
			text += " stopped: " + s.Stopped
		} else if !s.BlockedUntil.IsZero() {
			text += " no stock until " + formatTime(s.BlockedUntil)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// markSimulated marks what no real GPU stands behind.
func markSimulated(text string, simulated bool) string {
	if simulated {
		return text + " SIM"
	}
	return text
}

func formatGiB(mib int) string { return strconv.FormatFloat(float64(mib)/1024, 'f', -1, 64) + "GiB" }

// poolState is a word or two on a pool; paused is why its guesses are not warmed
// though it is not paused itself; empty: they are.
func poolState(x contract.Pool, paused string) string {
	stopped := slices.IndexFunc(x.Sources, func(s contract.SourceState) bool { return s.Stopped != "" })
	switch {
	case x.Recovering:
		return "recovering"
	case x.Failing != nil:
		return "failing"
	case stopped >= 0 && len(x.Sources) == 1:
		return "stopped: " + x.Sources[stopped].Stopped
	case !x.BlockedUntil.IsZero():
		return "no stock until " + formatTime(x.BlockedUntil)
	case !x.CappedUntil.IsZero():
		return "creation capped until " + formatTime(x.CappedUntil)
	case x.Paused:
		return "pre-warming paused"
	default:
		return firstNonEmpty(paused, "ok")
	}
}

// poolsNow is how pools are shown, with a pause of pre-warming, which is no pool's.
func (a *app) poolsNow(cmd *cobra.Command, api *client.Client) (view[contract.Pool], error) {
	if a.flags.output != table && a.flags.output != wide {
		return poolView, nil
	}
	now, err := api.Prewarm(cmd.Context())
	v := poolView
	v.columns = slices.Clone(v.columns)
	for i := range v.columns {
		if v.columns[i].head == "STATE" {
			v.columns[i].cell = func(x contract.Pool) string { return poolState(x, pausedFor(now)) }
		}
	}
	return v, err
}

func (a *app) newPoolsCommand() *cobra.Command {
	show := &cobra.Command{
		Use: "show POOL", Short: "Show one pool", Args: exactArgs("POOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.Pool(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			v, err := a.poolsNow(cmd, api)
			if err != nil {
				return err
			}
			return showOne(a, cmd, v, got)
		},
	}
	ls := newListCommand(a, "pools", poolView, (*client.Client).Pools)
	ls.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := a.newClient()
		if err != nil {
			return err
		}
		v, err := a.poolsNow(cmd, api)
		if err != nil {
			return err
		}
		return runList(a, cmd, v, (*client.Client).Pools, client.Filter{})
	}
	return newGroupCommand("pools", "See and define kinds of capacity", ls, show, a.newCreatePoolCommand(), a.newEditPoolCommand(), a.newDeletePoolCommand())
}

func (a *app) newCreatePoolCommand() *cobra.Command {
	var in contract.PoolCreate
	var hold, lease, creating span
	var idle, cleaning duration
	var memory float64
	var price string
	c := &cobra.Command{
		Use: "create NAME", Short: "Define a pool (operators)", Args: exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needFlags(cmd, "provisioner", "model", "gpus-per-node", "memory", "max-nodes", "price"); err != nil {
				return err
			}
			if !(memory > 0) || memory > 1<<14 {
				return usageErrorf("forewarm pools create --help", "--memory %v is not a number of GiB from 1 to 16384",
					memory)
			}
			in.Name, in.GPUMemoryMiB, in.PricePerNodeHour = args[0], int(math.Round(memory*1024)), parseDollars(price)
			in.WarmHoldSeconds, in.MaxLeaseSeconds = hold.seconds(), lease.seconds()
			setIfGiven(cmd, "idle-release", &in.IdleReleaseSeconds, idle.seconds())
			in.CleaningSeconds, in.CreateWindow = cleaning.seconds(), creating.seconds()
			api, err := a.newClient()
			if err != nil {
				return err
			}
			got, err := api.CreatePool(a.withIdempotencyKey(cmd.Context()), in)
			if err != nil {
				return err
			}
			return showOne(a, cmd, poolView, got)
		},
	}
	f := c.Flags()
	f.StringVar(&in.Provisioner, "provisioner", "", "who makes its nodes, such as sim or local")
	f.StringVar(&in.Model, "model", "", "GPU model, such as a100")
	f.StringVar(&in.Region, "region", "", "region at the provider")
	f.StringVar(&in.InstanceType, "instance-type", "", "instance type at the provider")
	f.IntVar(&in.GPUsPerNode, "gpus-per-node", 0, "GPUs of one node")
	f.Float64Var(&memory, "memory", 0, "memory of one GPU in GiB")
	f.IntVar(&in.MinNodes, "min-nodes", 0, "nodes that are always kept")
	f.IntVar(&in.MaxNodes, "max-nodes", 0, "most nodes at once")
	f.StringVar(&price, "price", "", "USD of one node for one hour")
	f.Var(&hold, "warm-hold", "how long a warm GPU waits for who reserved it (default 20m)")
	f.Var(&idle, "idle-release", "how long an idle node is kept (default 10m)")
	f.Var(&lease, "max-lease", "longest lease (default 7d)")
	f.Var(&cleaning, "cleaning", "kept free on a node between two bookings (default 0s)")
	f.IntVar(&in.MaxCreates, "max-creates", 0,
		"nodes that may be asked for in --create-window and have not served anybody (default three for each node, "+
			"at least 10)")
	f.Var(&creating, "create-window", "see --max-creates (default 10m)")
	f.IntVar(&in.NodeCPUs, "node-cpus", 0, "CPUs of one node, for quotas that count them")
	f.IntVar(&in.NodeMemoryMiB, "node-memory-mib", 0, "memory of one node, for quotas that count it")
	f.IntVar(&in.OnlineShare, "online-share", 0,
		"thousandths of the GPUs for online work, the rest for batch (default not split)")
	f.BoolVar(&in.BorrowIdle, "borrow-idle", false, "a workload may use what the other leaves free")
	f.BoolVar(&in.Simulated, "simulated", false, "mark its GPUs as simulated")
	return c
}

func (a *app) newEditPoolCommand() *cobra.Command {
	var minNodes, maxNodes, cpus, memory, share, creates int
	var price string
	var hold, lease, creating span
	var idle, cleaning duration
	var paused, borrow, force bool
	c := &cobra.Command{
		Use: "edit POOL", Short: "Change a pool (operators)", Args: exactArgs("POOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var patch contract.PoolPatch
			setIfGiven(cmd, "min-nodes", &patch.MinNodes, minNodes)
			setIfGiven(cmd, "max-nodes", &patch.MaxNodes, maxNodes)
			setIfGiven(cmd, "price", &patch.PricePerNodeHour, parseDollars(price))
			setIfGiven(cmd, "warm-hold", &patch.WarmHoldSeconds, hold.seconds())
			setIfGiven(cmd, "idle-release", &patch.IdleReleaseSeconds, idle.seconds())
			setIfGiven(cmd, "max-lease", &patch.MaxLeaseSeconds, lease.seconds())
			setIfGiven(cmd, "cleaning", &patch.CleaningSeconds, cleaning.seconds())
			setIfGiven(cmd, "max-creates", &patch.MaxCreates, creates)
			setIfGiven(cmd, "create-window", &patch.CreateWindow, creating.seconds())
			setIfGiven(cmd, "node-cpus", &patch.NodeCPUs, cpus)
			setIfGiven(cmd, "node-memory-mib", &patch.NodeMemoryMiB, memory)
			setIfGiven(cmd, "online-share", &patch.OnlineShare, share)
			setIfGiven(cmd, "borrow-idle", &patch.BorrowIdle, borrow)
			setIfGiven(cmd, "paused", &patch.Paused, paused)
			if patch == (contract.PoolPatch{}) {
				return usageErrorf("forewarm pools edit --help", "there is nothing to change")
			}
			patch.Force = force
			return a.patchPool(cmd, args[0], patch)
		},
	}
	f := c.Flags()
	f.IntVar(&minNodes, "min-nodes", 0, "nodes that are always kept")
	f.IntVar(&maxNodes, "max-nodes", 0, "most nodes at once")
	f.StringVar(&price, "price", "", "USD of one node for one hour")
	f.Var(&hold, "warm-hold", "how long a warm GPU waits for who reserved it")
	f.Var(&idle, "idle-release", "how long an idle node is kept")
	f.Var(&lease, "max-lease", "longest lease")
	f.Var(&cleaning, "cleaning", "kept free on a node between two bookings")
	f.IntVar(&creates, "max-creates", 0,
		"nodes that may be asked for in --create-window and have not served anybody; 0: three for each node, at "+
			"least 10")
	f.Var(&creating, "create-window", "see --max-creates")
	f.IntVar(&cpus, "node-cpus", 0, "CPUs of one node")
	f.IntVar(&memory, "node-memory-mib", 0, "memory of one node")
	f.IntVar(&share, "online-share", 0, "thousandths of the GPUs for online work, the rest for batch; 0: not split")
	f.BoolVar(&borrow, "borrow-idle", false, "a workload may use what the other leaves free")
	f.BoolVar(&force, "force", false,
		"do it although a workload has booked more than its new share, or promises lose their place")
	f.BoolVar(&paused, "paused", false, "switch speculative pre-warming off (true) or on (false)")
	return c
}

// patchPool changes the version of the pool that it has just read, so that a
// change made meanwhile is a conflict and not overwritten.
func (a *app) patchPool(cmd *cobra.Command, ref string, patch contract.PoolPatch) error {
	api, err := a.newClient()
	if err != nil {
		return err
	}
	pool, err := api.Pool(cmd.Context(), ref)
	if err != nil {
		return err
	}
	if a.previewsOnly() {
		return a.makePlan(cmd, api, contract.PlanPool,
			contract.PlannedPool{PoolID: pool.ID, Version: pool.Version, PoolPatch: patch})
	}
	got, err := api.PatchPool(a.withIdempotencyKey(cmd.Context()), pool.ID, pool.Version, patch)
	if err != nil {
		return err
	}
	if got.GPUCounts == nil {
		got.GPUCounts = pool.GPUCounts
	}
	return showOne(a, cmd, poolView, got)
}

// setIfGiven points a field of a patch at a flag's value if the flag was given.
func setIfGiven[T any](cmd *cobra.Command, flag string, field **T, value T) {
	if cmd.Flags().Changed(flag) {
		*field = &value
	}
}

func parseDollars(text string) contract.Money {
	return contract.Money{Amount: strings.TrimPrefix(text, "$"), Currency: contract.Currency}
}
