// Package top shows nodes and GPUs as they are now, again and again.
package top

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
)

// row is one GPU with what is known of its node and its holder.
type row struct {
	contract.GPU
	LeaseUntil      time.Time       `json:"lease_until,omitzero"`
	IdleCostPerHour *contract.Money `json:"idle_cost_per_hour,omitempty"`
	left            time.Duration   // of the lease
}

// NewCommand is the command top.
func NewCommand(a *app.App) *cobra.Command {
	var pool string
	var once bool
	var every time.Duration
	c := &cobra.Command{
		Use: "top", Short: "Watch nodes and GPUs: use, memory, temperature, power, holder, lease, cost of idling",
		Long: "Watch nodes and GPUs: use, memory, temperature, power, holder, lease, cost of idling.\n\n" +
			"Figures come from the daemons on nodes (docs/node.md); without one there is a dash. IDLE $/H is what a GPU " +
			"costs an hour that nobody holds, or that its holder does not use. SIM marks GPUs that are simulated. What is on " +
			"a node that is being removed is left out, unless somebody holds it.\n\n" +
			"Keys sort while it runs: u by use, m by memory, t by temperature, h by holder, i by cost of idling, " +
			"n by node again. q or Ctrl-C quits. Where its output goes to no terminal, it shows a table once, and ends; " +
			"-o jsonl goes on.",
		Args: flags.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			streams := a.Flags.Output == output.JSONLines || a.Flags.Output == output.Table
			if !once && !streams {
				return exit.UsageErrorf("forewarm top -o jsonl", "-o %s cannot go on: it has an end; add --once",
					a.Flags.Output)
			}
			api, err := a.NewClient()
			if err != nil {
				return err
			}
			w := watcher{app: a, cmd: cmd, api: api, pool: pool, order: &atomic.Int32{}}
			if once || a.Flags.Output == output.Table && !a.Terminal(cmd.OutOrStdout()) {
				return w.show(cmd.Context(), false)
			}
			return w.repeat(every)
		},
	}
	c.Flags().StringVar(&pool, "pool", "", "only those in this pool")
	c.Flags().BoolVar(&once, "once", false, "show it once, then end")
	c.Flags().DurationVar(&every, "every", 2*time.Second, "how often to look")
	return c
}

type watcher struct {
	app  *app.App
	cmd  *cobra.Command
	api  *client.Client
	pool string
	// order is the key typed last by which rows are sorted; 0: by node.
	order *atomic.Int32
}

// repeat shows it until the person has enough.
func (w watcher) repeat(every time.Duration) error {
	ctx, stop := context.WithCancel(w.cmd.Context())
	defer stop()
	live := w.app.Terminal(w.cmd.OutOrStdout())
	if in := w.cmd.InOrStdin(); w.app.Terminal(in) {
		defer readKeys(in)()
		go w.heed(in, stop)
	}
	for shown := false; ; {
		err := w.show(ctx, live)
		switch {
		case err == nil:
			shown = true
		case ctx.Err() != nil && w.cmd.Context().Err() == nil:
			return nil // q
		case !shown || ctx.Err() != nil || !client.IsTransient(err):
			return err
		default: // whoever watches wants to see it come back
			w.app.Say(w.cmd, "%s; it is looked at again", format.Plain(httpx.DescribeFailure(err, "the control plane")))
		}
		if err := w.app.Pause(ctx, every); err != nil {
			if w.cmd.Context().Err() == nil {
				return nil // q
			}
			return err
		}
	}
}

// orders are by what the rows are sorted when a key is typed: the largest first.
var orders = map[byte]func(a, b row) int{
	'u': func(a, b row) int { return byFigure(a, b, usage) },
	't': func(a, b row) int { return byFigure(a, b, temperature) },
	'm': func(a, b row) int { return byFigure(a, b, func(s contract.GPUSeen) *int { return s.MemoryUsedMiB }) },
	'h': func(a, b row) int { return cmp.Compare(b.AllocationID, a.AllocationID) },
	'i': func(a, b row) int { return cmp.Compare(b.idleCost(), a.idleCost()) },
}

func byFigure(a, b row, of func(contract.GPUSeen) *int) int {
	figure := func(r row) int {
		if r.Seen == nil || of(*r.Seen) == nil {
			return -1
		}
		return *of(*r.Seen)
	}
	return cmp.Compare(figure(b), figure(a))
}

// idleCost is what the GPU costs an hour for nothing; 0: it does something, or has no price.
func (r row) idleCost() float64 {
	if r.IdleCostPerHour == nil {
		return 0
	}
	amount, _ := strconv.ParseFloat(r.IdleCostPerHour.Amount, 64)
	return amount
}

// heed sorts as the keys say that are typed, and calls stop when q is.
func (w watcher) heed(in io.Reader, stop func()) {
	keys := bufio.NewReader(in)
	for {
		key, err := keys.ReadByte()
		if err != nil {
			return
		}
		if key |= 0x20; key == 'q' { // a small letter
			stop()
			return
		}
		if _, known := orders[key]; known || key == 'n' {
			w.order.Store(int32(key))
		}
	}
}

// show looks and shows what is there. live overwrites what was shown before.
func (w watcher) show(ctx context.Context, live bool) error {
	rows, err := w.read(ctx)
	if err != nil {
		return err
	}
	if order := orders[byte(w.order.Load())]; order != nil { //nolint:gosec // it was a byte
		slices.SortStableFunc(rows, order)
	}
	if w.app.Flags.Output != output.Table {
		return output.List(w.app, w.cmd, view, rows)
	}
	if live {
		_, _ = fmt.Fprint(w.cmd.OutOrStdout(), "\x1b[H\x1b[2J")
	}
	_, _ = fmt.Fprintln(w.cmd.OutOrStdout(), summary(rows))
	return output.List(w.app, w.cmd, view, rows)
}

func (w watcher) read(ctx context.Context) ([]row, error) {
	gpus, err := client.All(w.api.GPUs(ctx, client.GPUFilter{Filter: client.Filter{Pool: w.pool}}))
	if err != nil {
		return nil, err
	}
	nodes, err := client.All(w.api.Nodes(ctx, client.Filter{Pool: w.pool}))
	if err != nil {
		return nil, err
	}
	held, err := client.All(w.api.Allocations(ctx, client.Filter{Pool: w.pool}))
	if err != nil {
		return nil, err
	}
	byNode, leases := map[string]contract.Node{}, map[string]time.Time{}
	for _, n := range nodes {
		byNode[n.ID] = n
	}
	for _, x := range held {
		leases[x.ID] = x.LeaseUntil
	}
	var rows []row
	for _, g := range gpus {
		if isLeaving(g) {
			continue
		}
		rows = append(rows, newRow(g, byNode[g.NodeID], leases[g.AllocationID], w.app.Clock.Now()))
	}
	return rows, nil
}

// isLeaving reports whether a GPU goes with its node, and nobody holds it any more.
func isLeaving(g contract.GPU) bool {
	return g.AllocationID == "" && (g.NodeState == "draining" || g.NodeState == "deprovisioning")
}

func newRow(g contract.GPU, n contract.Node, lease, now time.Time) row {
	r := row{GPU: g, LeaseUntil: lease}
	if n.Daemon != nil && n.Daemon.State == contract.DaemonSilent {
		r.Seen = nil // it was so when the daemon was heard last, and nobody knows what is so now
	}
	if !lease.IsZero() {
		r.left = max(lease.Sub(now), 0)
	}
	if n.PricePerNodeHour == nil || n.GPUs == 0 {
		return r
	}
	if idle := r.Seen != nil && r.Seen.Utilization != nil && *r.Seen.Utilization == 0; g.AllocationID == "" || idle {
		r.IdleCostPerHour = shareOf(*n.PricePerNodeHour, n.GPUs)
	}
	return r
}

// shareOf is the price of one of a node's GPUs, to the cent.
func shareOf(price contract.Money, gpus int) *contract.Money {
	v, err := strconv.ParseFloat(price.Amount, 64)
	if err != nil {
		return nil
	}
	return &contract.Money{Amount: strconv.FormatFloat(v/float64(gpus), 'f', 2, 64), Currency: price.Currency}
}

// view fits into 80 columns: of a node's id it shows the end, which tells nodes apart.
var view = output.View[row]{
	Name: func(r row) string { return cmp.Or(r.UUID, r.NodeID) },
	Columns: []output.Column[row]{
		{Head: "NODE", Cell: func(r row) string { return r.NodeID[max(0, len(r.NodeID)-6):] }},
		{Head: "GPU", Right: true, Cell: func(r row) string { return simulatedMark(r.Simulated) + format.GPUPlace(r.GPU) }},
		{Head: "USE", Right: true, Cell: func(r row) string { return figure(r, usage, "%") }},
		{Head: "MEM", Right: true, Cell: memory},
		{Head: "TEMP", Right: true, Cell: func(r row) string { return figure(r, temperature, "C") }},
		{Head: "W", Right: true, Cell: power},
		{Head: "HEALTH", Cell: func(r row) string { return r.Health }},
		{Head: "HELD BY", Cell: func(r row) string {
			return format.OrDash(fmt.Sprintf("%.10s", cmp.Or(r.AllocationName, r.AllocationID)))
		}},
		{Head: "LEASE", Right: true, Cell: func(r row) string {
			if r.LeaseUntil.IsZero() {
				return "-"
			}
			return leftText(r.left)
		}},
		{Head: "IDLE $/H", Right: true, Cell: func(r row) string {
			if r.IdleCostPerHour == nil {
				return "-"
			}
			return format.Money(*r.IdleCostPerHour)
		}},
		{Head: "SOURCE", Wide: true, Cell: func(r row) string {
			switch {
			case r.Seen == nil:
				return "-"
			case r.Seen.Simulated:
				return "SIM"
			}
			return "daemon"
		}},
		{Head: "MODEL", Wide: true, Cell: func(r row) string { return format.OrDash(r.Model) }},
		{Head: "UUID", Wide: true, Cell: func(r row) string { return format.OrDash(r.UUID) }},
	},
}

// leftText is how much of a lease is left: to the second once it is about to end.
func leftText(left time.Duration) string {
	if left < 2*time.Minute {
		return format.Duration(left.Truncate(time.Second))
	}
	return format.Duration(left.Truncate(time.Minute))
}

func usage(s contract.GPUSeen) *int       { return s.Utilization }
func temperature(s contract.GPUSeen) *int { return s.Temperature }

func figure(r row, of func(contract.GPUSeen) *int, unit string) string {
	if r.Seen == nil || of(*r.Seen) == nil {
		return "-"
	}
	return fmt.Sprintf("%d%s", *of(*r.Seen), unit)
}

func memory(r row) string {
	if r.Seen == nil || r.Seen.MemoryUsedMiB == nil {
		return "-"
	}
	return gibibytes(*r.Seen.MemoryUsedMiB)
}

func gibibytes(mebibytes int) string { return fmt.Sprintf("%.1fG", float64(mebibytes)/1024) }

func power(r row) string {
	if r.Seen == nil || r.Seen.Power == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", *r.Seen.Power)
}
