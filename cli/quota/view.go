package quota

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var quotaView = output.View[contract.Quota]{
	Name: func(x contract.Quota) string { return x.OrganizationID },
	Columns: []output.Column[contract.Quota]{
		{Head: "ORGANIZATION",
			Cell: func(x contract.Quota) string { return cmp.Or(x.OrganizationName, x.OrganizationID) }},
		{Head: "MAX GPUS", Cell: func(x contract.Quota) string { return strconv.Itoa(x.Limits.MaxGPUs) }},
		{Head: "GPU MEMORY", Cell: func(x contract.Quota) string { return limitText(x.Limits.MaxGPUMemoryMiB, "MiB") }},
		{Head: "CPUS", Cell: func(x contract.Quota) string { return limitText(x.Limits.MaxCPUs, "") }},
		{Head: "MEMORY", Cell: func(x contract.Quota) string { return limitText(x.Limits.MaxMemoryMiB, "MiB") }},
		{Head: "BOOKINGS", Cell: func(x contract.Quota) string { return limitText(x.Limits.MaxBookings, "") }},
		{Head: "GPU-HOURS",
			Cell: func(x contract.Quota) string { return limitText(x.Limits.GPUHours, " a "+x.Limits.Period) }},
		{Head: "MONEY", Cell: func(x contract.Quota) string { return spendingText(x.Limits) }},
		{Head: "SPECULATION/DAY",
			Cell: func(x contract.Quota) string { return format.Money(x.Limits.SpeculationPerDay) }},
		{Head: "COHORT", Cell: func(x contract.Quota) string { return format.OrDash(x.Limits.Cohort) }},
		{Head: "BORROWING", Cell: func(x contract.Quota) string { return boundsText(x.Limits, x.Limits.Borrowing) }},
		{Head: "LENDING", Cell: func(x contract.Quota) string { return boundsText(x.Limits, x.Limits.Lending) }},
		{Head: "WEIGHT", Cell: func(x contract.Quota) string { return strconv.Itoa(x.Limits.Weight) }},
	},
}

// limitText renders a limit that may be absent.
func limitText(n *int64, unit string) string {
	if n == nil {
		return "no limit"
	}
	return strconv.FormatInt(*n, 10) + unit
}

func spendingText(l contract.Limits) string {
	if l.Money == nil {
		return "no limit"
	}
	return format.Money(*l.Money) + " a " + l.Period
}

// boundsText renders what may be borrowed or lent.
func boundsText(l contract.Limits, b contract.Bounds) string {
	if l.Cohort == "" {
		return "-"
	}
	var texts []string
	for _, one := range []struct {
		of string
		n  *int64
	}{{"GPUs", b.GPUs}, {"MiB of GPU memory", b.GPUMemoryMiB}, {"CPUs", b.CPUs}, {"MiB of memory", b.MemoryMiB},
		{"bookings", b.Bookings}} {
		if one.n != nil {
			texts = append(texts, fmt.Sprintf("%d %s", *one.n, one.of))
		}
	}
	if len(texts) == 0 {
		return "no limit"
	}
	return "at most " + strings.Join(texts, ", ")
}

var usageView = output.View[contract.ResourceUsage]{
	Name: func(x contract.ResourceUsage) string { return x.Resource },
	Columns: []output.Column[contract.ResourceUsage]{
		{Head: "RESOURCE", Cell: func(x contract.ResourceUsage) string { return x.Resource }},
		{Head: "NOW", Right: true, Cell: func(x contract.ResourceUsage) string { return strconv.FormatInt(x.Now, 10) }},
		{Head: "PEAK", Right: true,
			Cell: func(x contract.ResourceUsage) string { return strconv.FormatInt(x.Peak, 10) }},
		{Head: "LIMIT", Right: true, Cell: func(x contract.ResourceUsage) string { return limitText(x.Limit, "") }},
		{Head: "WITH BORROWING", Right: true,
			Cell: func(x contract.ResourceUsage) string { return limitText(x.Ceiling, "") }},
	},
}

var riskView = output.View[contract.PromiseAtRisk]{
	Name: func(x contract.PromiseAtRisk) string { return x.ID },
	Columns: []output.Column[contract.PromiseAtRisk]{
		{Head: "BEYOND THE QUOTA", Cell: func(x contract.PromiseAtRisk) string { return x.ID }},
		{Head: "GPUS", Right: true, Cell: func(x contract.PromiseAtRisk) string { return strconv.Itoa(x.GPUs) }},
		{Head: "START", Cell: func(x contract.PromiseAtRisk) string { return format.Time(x.Start) }},
		{Head: "END", Cell: func(x contract.PromiseAtRisk) string { return format.Time(x.End) }},
		{Head: "LIMIT", Cell: func(x contract.PromiseAtRisk) string { return firstBlocker(x) }},
	},
}

func firstBlocker(x contract.PromiseAtRisk) string {
	if len(x.Blockers) == 0 {
		return "-"
	}
	return x.Blockers[0].Message
}
