package allocations

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

// View shows allocations.
var View = output.View[contract.Allocation]{
	Name: func(x contract.Allocation) string { return x.ID },
	Columns: []output.Column[contract.Allocation]{
		{Head: "ID", Cell: func(x contract.Allocation) string { return x.ID }},
		{Head: "NAME", Cell: nameText},
		{Head: "STATE", Cell: stateText},
		{Head: "GPUS", Right: true, Cell: func(x contract.Allocation) string { return strconv.Itoa(x.GPUs) }},
		{Head: "POOL", Cell: func(x contract.Allocation) string { return cmp.Or(x.PoolName, x.PoolID) }},
		{Head: "SHAPE", Cell: func(x contract.Allocation) string {
			return format.Shape(contract.Shape{GPUs: x.GPUs, Nodes: x.Nodes, GPUsPerNode: x.GPUsPerNode})
		}, Wide: true},
		{Head: "WAITED", Right: true, Cell: func(x contract.Allocation) string { return waitedText(x) }},
		{Head: "LEASE UNTIL", Cell: func(x contract.Allocation) string { return format.Time(x.LeaseUntil) }},
		{Head: "COST", Right: true, Cell: costText},
		{Head: "REQUESTED", Cell: func(x contract.Allocation) string { return format.Time(x.RequestedAt) }, Wide: true},
		{Head: "WARM NODES", Right: true, Cell: warmText, Wide: true},
		{Head: "ENDED", Cell: func(x contract.Allocation) string { return format.Time(x.EndedAt) }, Wide: true},
		{Head: "CLAIMED",
			Cell: func(x contract.Allocation) string { return format.OrDash(strings.Join(x.ReservationIDs, " ")) },
			Wide: true},
		{Head: "HELD BY",
			Cell: func(x contract.Allocation) string { return format.OrDash(cmp.Or(x.HeldByName, x.HeldBy)) },
			Wide: true},
		{Head: "ORGANIZATION",
			Cell: func(x contract.Allocation) string { return cmp.Or(x.OrganizationName, x.OrganizationID) },
			Wide: true},
		{Head: "DEVICES", Cell: func(x contract.Allocation) string { return format.Devices(x.Devices) }, Wide: true},
		{Head: "REASON", Cell: func(x contract.Allocation) string { return format.OrDash(x.Reason) }},
	},
}

// showView shows one allocation, which alone says how to get to its GPUs.
var showView = output.View[contract.Allocation]{Name: View.Name,
	Columns: append(slices.Clone(View.Columns), output.Column[contract.Allocation]{Head: "IDLE SINCE", Cell: idleText},
		output.Column[contract.Allocation]{Head: "WAY IN", Cell: wayText})}

// stateText is the state of an allocation; what idle GPUs cost is for whoever looks at it alone.
func stateText(x contract.Allocation) string {
	if x.IdleSince.IsZero() {
		return x.State
	}
	return x.State + ", idle"
}

// idleText is since when an allocation's GPUs do nothing, what that has cost, and what
// becomes of it.
func idleText(x contract.Allocation) string {
	if x.IdleSince.IsZero() || x.IdleCost == nil {
		return "-"
	}
	text := format.Time(x.IdleSince) + ", " + format.Money(*x.IdleCost)
	switch {
	case !x.IdleReclaimAt.IsZero():
		text += "; warned, ends " + format.Time(x.IdleReclaimAt) + " unless used"
	case !x.IdleWarnedAt.IsZero():
		text += "; warned"
	}
	return text
}

// nameText is what an allocation is called: work that a cluster placed by its label and user.
func nameText(x contract.Allocation) string {
	if x.Work == nil {
		return format.OrDash(x.Name)
	}
	return strings.TrimSuffix(cmp.Or(x.Work.Label, x.Work.ID)+" "+x.Work.User, " ")
}

// warmText says how many of the nodes that a cluster gave some work were kept warm.
func warmText(x contract.Allocation) string {
	if x.Work == nil {
		return "-"
	}
	return fmt.Sprintf("%d of %d", x.Work.WarmNodes, x.Nodes)
}

// costText is what the lease costs. Of work that a cluster placed the costs of its nodes
// tell.
func costText(x contract.Allocation) string {
	if x.Work != nil {
		return "-"
	}
	return format.Money(x.EstimatedCost)
}

func waitedText(x contract.Allocation) string {
	if x.WaitSeconds == nil {
		return "-"
	}
	return strconv.FormatFloat(*x.WaitSeconds, 'f', 1, 64) + "s"
}
