package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
)

// Access is how the holder of an allocation gets to its GPUs.
type Access struct {
	DevicesOnly  bool         // the pool's policy: the nodes have no address
	SharesPerGPU int          // 1: it has its GPUs alone
	Nodes        []NodeAccess // by rank
}

// NodeAccess is one node of an allocation: of its devices, or their shares, those that the
// allocation holds, by index.
type NodeAccess struct {
	NodeID    string
	Address   string // as package access reads it; empty where the pool's policy hides it
	Simulated bool
	Devices   []capacity.Device
	Barred    bool // others' work is there whom it does not keep the holder's apart from; false where the policy hides it
}

// MayEnter reports whether the actor is told how to get to what an organization holds:
// operators, and those of the organization who may ask for GPUs. Nobody else is, and
// nothing else decides it.
func (a Actor) MayEnter(organizationID string) bool {
	if a.Role == Operator {
		return true
	}
	return a.AtLeast(Member) && organizationID != "" && a.OrganizationID == organizationID
}

// LiveReader is what AccessTo reads: a Reader, or what a verb that has just looked at a pool knows of it.
type LiveReader interface {
	Now() time.Time
	LiveState(id string) (PoolState, error)
}

// AccessTo returns how the actor gets to an allocation's GPUs; nil when it must not
// know, and when there is nothing to get to: before the allocation is active, once it
// or its lease is over, and of work that a cluster's scheduler placed.
func AccessTo(r LiveReader, who Actor, a allocation.Allocation) (*Access, error) {
	over := !a.LeaseUntil.IsZero() && !r.Now().Before(a.LeaseUntil)
	if !who.MayEnter(a.OrganizationID) || a.State() != allocation.Active || a.Observed() || over {
		return nil, nil
	}
	state, err := r.LiveState(a.PoolID)
	if err != nil {
		return nil, fmt.Errorf("reading the pool of allocation %s: %w", a.ID, err)
	}
	out := &Access{DevicesOnly: state.Pool.DevicesOnly, SharesPerGPU: state.Pool.Shares()}
	for _, n := range nodesOf(state, a) {
		seen := NodeAccess{NodeID: n.ID, Address: n.Address, Simulated: n.Simulated, Devices: heldOn(n, a)}
		if out.DevicesOnly {
			seen.Address = ""
		} else {
			seen.Barred = IsBarred(state, n, a)
		}
		out.Nodes = append(out.Nodes, seen)
	}
	return out, nil
}

// IsBarred reports whether work of an allocation's holder would not be let in on a node now: another organization's is
// there, and the node does not keep the two apart as well as its pool asks.
func IsBarred(s PoolState, n node.Node, a allocation.Allocation) bool {
	return n.Isolation.Mixes(s.Pool.Isolation) && slices.ContainsFunc(s.Allocations, func(o allocation.Allocation) bool {
		return IsOthersWork(o, a.OrganizationID, n.ID)
	})
}

// IsOthersWork reports whether an allocation is of another organization, with work that has begun on a node.
func IsOthersWork(a allocation.Allocation, organizationID, nodeID string) bool {
	return a.Live() && a.OrganizationID != organizationID && slices.Contains(a.Opened, nodeID)
}

// GPUs are the GPUs that the devices are, or are shares of, each once.
func (n NodeAccess) GPUs() []capacity.Device {
	var out []capacity.Device
	for _, d := range n.Devices {
		d.UUID = capacity.GPUOf(d.UUID)
		if !slices.ContainsFunc(out, func(o capacity.Device) bool { return o.UUID == d.UUID }) {
			out = append(out, d)
		}
	}
	return out
}

// nodesOf are the nodes that an allocation holds devices of, in the order of its slots:
// the last one has the rest of its GPUs.
func nodesOf(s PoolState, a allocation.Allocation) []node.Node {
	var out []node.Node
	for _, n := range s.Nodes {
		if slices.ContainsFunc(a.Devices, func(h allocation.Held) bool { return h.NodeID == n.ID }) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(x, y node.Node) int {
		return cmp.Compare(slices.Index(a.Slots, x.Slot), slices.Index(a.Slots, y.Slot))
	})
	return out
}

// heldOn are the devices of a node that an allocation holds.
func heldOn(n node.Node, a allocation.Allocation) []capacity.Device {
	var out []capacity.Device
	for _, d := range n.Devices {
		if slices.Contains(a.Devices, allocation.Held{NodeID: n.ID, UUID: d.UUID}) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(x, y capacity.Device) int { return cmp.Compare(x.Index, y.Index) })
	return out
}
