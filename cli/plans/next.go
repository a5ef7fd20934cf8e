package plans

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// NextCommands are the commands that somebody may want to run after an allocation was shown.
func NextCommands(x contract.Allocation) string {
	switch x.State {
	case "active":
		if isShut(x) {
			return "Next:  forewarm explain " + x.ID + "  ·  forewarm release " + x.ID
		}
		next := "forewarm extend " + x.ID + " --by 1h  ·  forewarm release " + x.ID
		if enter := enterCommand(x); enter != "" {
			next = enter + "  ·  " + next
		}
		return "Next:  " + next
	case "pending":
		return "Next:  forewarm wait " + x.ID + "  ·  forewarm release " + x.ID
	default:
		return "Next:  forewarm allocations list"
	}
}

// isShut reports whether work of the holder of an active allocation is let in on none of its nodes now.
func isShut(x contract.Allocation) bool {
	return x.Access != nil && len(x.Access.Nodes) > 0 &&
		!slices.ContainsFunc(x.Access.Nodes, func(n contract.NodeAccess) bool { return !n.Barred })
}

// enterCommand is the command that enters an active allocation: through the daemon of its
// first node where there is one, else by the node's own way in; empty: there is none.
func enterCommand(x contract.Allocation) string {
	name := flags.Quote(cmp.Or(x.Name, x.ID))
	switch {
	case x.Access == nil || len(x.Access.Nodes) == 0:
		return ""
	case x.Access.Nodes[0].TakesSessions():
		return "forewarm exec " + name
	case len(x.Access.Nodes[0].Command) > 0:
		return "forewarm ssh " + name
	}
	return ""
}

// AfterReserving are the commands that somebody may want to run after a reservation was
// made. Where a cluster's own scheduler places the work it is not claimed by hand.
func AfterReserving(ctx context.Context, api *client.Client, r contract.Reservation) string {
	if r.State == "waitlisted" {
		return fmt.Sprintf("Next:  forewarm explain %s  ·  forewarm reservations cancel %s", r.ID, r.ID)
	}
	if p, err := api.Pool(ctx, r.PoolID); err == nil && p.Use == "observed" {
		return fmt.Sprintf("Next:  submit the job to the cluster as always: it claims the reservation when it starts "+
			"there\n"+
			"       forewarm reservations show %s  ·  forewarm reservations cancel %s", r.ID, r.ID)
	}
	return fmt.Sprintf("Next:  forewarm reservations claim %s  ·  forewarm reservations cancel %s", r.ID, r.ID)
}
