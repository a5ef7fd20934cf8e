package nodes

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/labels"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var nodeView = output.View[contract.Node]{
	Name: func(x contract.Node) string { return x.ID },
	Columns: []output.Column[contract.Node]{
		{Head: "ID", Cell: func(x contract.Node) string { return format.MarkSimulated(x.ID, x.Simulated) }},
		{Head: "STATE", Cell: func(x contract.Node) string { return x.State }},
		{Head: "GPUS", Right: true, Cell: func(x contract.Node) string { return strconv.Itoa(x.GPUs) }},
		{Head: "REQUESTED", Cell: func(x contract.Node) string { return format.Time(x.RequestedAt) }},
		{Head: "BOOT", Right: true,
			Cell: func(x contract.Node) string { return elapsedText(x.RequestedAt, x.ReadyAt) }},
		{Head: "READY", Cell: func(x contract.Node) string { return format.Time(x.ReadyAt) }},
		{Head: "POOL", Cell: func(x contract.Node) string { return cmp.Or(x.PoolName, x.PoolID) }},
		{Head: "SLOT", Right: true, Cell: func(x contract.Node) string { return strconv.Itoa(x.Slot) }, Wide: true},
		{Head: "SOURCE",
			Cell: func(x contract.Node) string { return format.Source(x.Provisioner, x.Region, x.InstanceType) },
			Wide: true},
		{Head: "$/H", Right: true, Cell: func(x contract.Node) string {
			if x.PricePerNodeHour == nil {
				return "-"
			}
			return format.Money(*x.PricePerNodeHour)
		}, Wide: true},
		{Head: "PROVIDER ID", Cell: func(x contract.Node) string { return format.OrDash(x.ProviderID) }, Wide: true},
		{Head: "ADDRESS", Cell: func(x contract.Node) string { return format.OrDash(x.Address) }, Wide: true},
		{Head: "ENDS ITSELF", Cell: func(x contract.Node) string { return format.Time(x.ExpiresAt) }, Wide: true},
		{Head: "GONE", Cell: func(x contract.Node) string { return format.Time(x.GoneAt) }, Wide: true},
		{Head: "DAEMON", Cell: func(x contract.Node) string {
			if x.Daemon == nil {
				return "-"
			}
			return x.Daemon.State
		}, Wide: true},
		{Head: "LABELS", Cell: func(x contract.Node) string { return format.OrDash(labels.Text(x.Labels)) }, Wide: true},
		{Head: "TAINTS", Wide: true,
			Cell: func(x contract.Node) string { return format.OrDash(strings.Join(x.Taints, " ")) }},
		{Head: "HOT UNTIL", Cell: func(x contract.Node) string { return format.Time(x.HotUntil) }, Wide: true},
		{Head: "LIMITS", Cell: limitsText, Wide: true},
		{Head: "CONTAINERS", Cell: func(x contract.Node) string {
			if x.Daemon == nil {
				return "-"
			}
			return format.OrDash(x.Daemon.Containers)
		}, Wide: true},
		{Head: "DCGM EXPORTER", Cell: func(x contract.Node) string {
			if x.Daemon == nil {
				return "-"
			}
			return format.OrDash(x.Daemon.ExporterProblem)
		}, Wide: true},
		{Head: "LAST FAILURE", Cell: func(x contract.Node) string { return format.Failure(x.Failing) }, Wide: true},
		{Head: "REASON", Cell: func(x contract.Node) string {
			if x.Failing != nil {
				return "provider_failing"
			}
			return format.OrDash(cmp.Or(x.KeptReason, x.Reason))
		}},
	},
}

// limitsText is what of the machine its daemon bounds for the work of each allocation.
func limitsText(x contract.Node) string {
	switch d := x.Daemon; {
	case d == nil || d.Isolation == "":
		return "-"
	case d.Unbounded != "":
		return "none: " + d.Unbounded
	}
	return "memory, processors"
}

func elapsedText(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return "-"
	}
	return format.Duration(to.Sub(from))
}
