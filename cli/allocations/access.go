package allocations

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/cli/app"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/names"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// seat is one node of an allocation whose holder wants to use it.
type seat struct {
	of   contract.Allocation
	node contract.NodeAccess
}

// findSeat is the node of a rank of what ref names.
func findSeat(a *app.App, cmd *cobra.Command, ref string, rank int) (seat, error) {
	api, id, err := names.AllocationID(a, cmd, ref)
	if err != nil {
		return seat{}, err
	}
	got, err := api.Allocation(cmd.Context(), id)
	if err != nil {
		return seat{}, err
	}
	if got.Access == nil {
		return seat{}, noAccess(got)
	}
	if rank < 0 || rank >= len(got.Access.Nodes) {
		return seat{}, exit.UsageErrorf("forewarm allocations show "+flags.Quote(ref),
			"--node %d: %s has %s, counted from 0", rank, ref, format.Count(len(got.Access.Nodes), "node"))
	}
	return seat{of: got, node: got.Access.Nodes[rank]}, checkEnvironment(got.Access.Nodes[rank])
}

// noAccess says why nobody is told how to get to an allocation's GPUs.
func noAccess(x contract.Allocation) error {
	e := &exit.Error{Code: exit.Conflict, Next: []string{"forewarm allocations show " + x.ID}}
	switch {
	case x.State == "pending":
		e.Message, e.Next = x.ID+" is pending: it has no GPUs yet", []string{"forewarm wait " + x.ID}
	case x.State != "active":
		e.Message = fmt.Sprintf("%s is %s: its GPUs are not yours any more", x.ID, x.State)
	case x.Work != nil:
		e.Message = x.ID + " was placed by the cluster's own scheduler: enter it as the cluster lets you"
	default:
		e.Code, e.Next = exit.Policy, []string{"forewarm whoami"}
		e.Message = "your key is not told how to get to " + x.ID +
			": that takes the role member, or more, of the organization that holds it"
	}
	return e
}

// checkEnvironment refuses an environment that would run something of the server's own here.
func checkEnvironment(n contract.NodeAccess) error {
	if err := n.CheckEnvironment(); err != nil {
		return &exit.Error{Code: exit.Failed, Next: []string{"forewarm version"}, Message: err.Error(), Err: err}
	}
	return nil
}

// entered is an allocation with its access, where it can be read: the answer to what
// made it has none.
func entered(ctx context.Context, api *client.Client, x contract.Allocation) contract.Allocation {
	if x.State != "active" || x.Access != nil {
		return x
	}
	read, err := api.Allocation(ctx, x.ID)
	if err != nil {
		return x // it is there all the same, and the next command will say what is wrong
	}
	return read
}

// wayText says how to get to an allocation's nodes.
func wayText(x contract.Allocation) string {
	if x.Access == nil {
		return "-"
	}
	var all []string
	for _, n := range x.Access.Nodes {
		text := cmp.Or(n.Shell, wayless(x, n))
		if n.Kind == contract.WayLocal {
			text += " on the server's machine"
		}
		if n.TakesSessions() {
			through := "forewarm exec " + flags.Quote(cmp.Or(x.Name, x.ID))
			if n.Shell == "" {
				text = through
			} else {
				text = through + ", or " + text
			}
		}
		text += closedText(n)
		if len(x.Access.Nodes) > 1 {
			text = fmt.Sprintf("%d: %s", n.Rank, text)
		}
		all = append(all, text)
	}
	return strings.Join(all, "  ·  ")
}

// closedText says why nothing begins on a node now.
func closedText(n contract.NodeAccess) string {
	switch {
	case n.Barred:
		return " (closed: another organization's work is there, from which the node would not keep yours apart)"
	case n.Daemon == contract.DaemonSilent:
		return " (its daemon is silent: no session begins before it is back)"
	}
	return ""
}

// wayless says why a node has no way in.
func wayless(x contract.Allocation, n contract.NodeAccess) string {
	switch {
	case x.Access.Policy == contract.AccessDevices:
		return "its pool names the devices only"
	case n.Kind == contract.WaySimulated:
		return "none: the node is simulated"
	}
	return "none is known"
}
