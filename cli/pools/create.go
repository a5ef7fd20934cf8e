package pools

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

func newCreateCommand(a *app.App) *cobra.Command {
	var in contract.PoolCreate
	var hold, lease, creating flags.Span
	var idle, cleaning, warn, reclaim flags.Duration
	var memory float64
	var price string
	var holders []string
	c := &cobra.Command{
		Use: "create NAME", Short: "Define a pool (operators)", Args: flags.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err :=
				flags.Need(cmd, "provisioner", "model", "gpus-per-node", "memory", "max-nodes", "price"); err != nil {
				return err
			}
			if !(memory > 0) || memory > 1<<14 {
				return exit.UsageErrorf("forewarm pools create --help",
					"--memory %v is not a number of GiB from 1 to 16384",
					memory)
			}
			in.Name, in.GPUMemoryMiB, in.PricePerNodeHour = args[0], int(math.Round(memory*1024)),
				flags.ParseDollars(price)
			in.WarmHoldSeconds, in.MaxLeaseSeconds = hold.Seconds(), lease.Seconds()
			flags.SetIfGiven(cmd, "idle-release", &in.IdleReleaseSeconds, idle.Seconds())
			in.CleaningSeconds, in.CreateWindow = cleaning.Seconds(), creating.Seconds()
			in.IdleWarnAfter, in.IdleReclaimAfter = warn.Seconds(), reclaim.Seconds()
			var err error
			if in.Holders, err = parseHolders(holders); err != nil {
				return err
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			got, err := api.CreatePool(a.WithIdempotencyKey(cmd.Context()), in)
			if err != nil {
				return err
			}
			return output.One(a, cmd, poolView, got)
		},
	}
	f := c.Flags()
	f.StringVar(&in.Provisioner, "provisioner", "", "the provisioner of its nodes, such as sim or local")
	f.StringVar(&in.Model, "model", "", "GPU model, such as a100")
	f.StringVar(&in.Region, "region", "", "region at the provider")
	f.StringVar(&in.InstanceType, "instance-type", "", "instance type at the provider")
	f.IntVar(&in.GPUsPerNode, "gpus-per-node", 0, "GPUs of one node; with --shares-per-gpu, shares of them")
	f.IntVar(&in.SharesPerGPU, "shares-per-gpu", 0, "how many bookings may have one GPU at once (default 1)")
	f.Float64Var(&memory, "memory", 0, "memory of one GPU in GiB; with --shares-per-gpu, of one share")
	f.IntVar(&in.MinNodes, "min-nodes", 0, "nodes to keep at all times")
	f.IntVar(&in.MaxNodes, "max-nodes", 0, "most nodes at once")
	f.StringVar(&price, "price", "", "USD of one node for one hour")
	f.Var(&hold, "warm-hold", "how long a warm GPU waits for the owner of its reservation (default 20m)")
	f.Var(&idle, "idle-release", "how long an idle node is kept (default 10m)")
	f.Var(&lease, "max-lease", "longest lease (default 7d)")
	f.Var(&cleaning, "cleaning", "how long a node is kept free between two bookings (default 0s)")
	f.Var(&warn, "idle-warn-after", warnHelp+" (default 0s)")
	f.Var(&reclaim, "idle-reclaim-after", reclaimHelp+" (default 0s)")
	f.IntVar(&in.MaxCreates, "max-creates", 0,
		"most nodes to request in --create-window that have served nobody (default three for each node, "+
			"at least 10)")
	f.Var(&creating, "create-window", "the period that --max-creates counts in (default 10m)")
	f.IntVar(&in.NodeCPUs, "node-cpus", 0, "CPUs of one node, for quotas that count them")
	f.IntVar(&in.NodeMemoryMiB, "node-memory-mib", 0, "memory of one node, for quotas that count it")
	f.IntVar(&in.OnlineShare, "online-share", 0,
		"thousandths of the GPUs for online work, the rest for batch (default not split)")
	f.BoolVar(&in.BorrowIdle, "borrow-idle", false, "a workload may use what the other leaves free")
	f.StringVar(&in.Use, "use", "",
		"reserved (default): Forewarm hands out its GPUs; observed: a cluster's own scheduler places the work")
	f.StringArrayVar(&holders, "holder", nil, holderHelp)
	f.StringVar(&in.DefaultHolder, "default-organization", "", "of an observed pool, whose work is that no --holder names")
	f.StringVar(&in.Access, "access", "", accessHelp+" (default shell)")
	f.StringVar(&in.Isolation, "isolation", "", isolationHelp+" (default user)")
	f.StringVar(&in.MinDriver, "min-driver", "", driverHelp)
	f.BoolVar(&in.Simulated, "simulated", false, "mark its GPUs as simulated")
	return c
}
