package pools

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/cli/labels"
	"github.com/forewarm/forewarm/cli/output"
	"github.com/forewarm/forewarm/contract"
)

var poolView = output.View[contract.Pool]{
	Name: func(x contract.Pool) string { return x.Name },
	Columns: []output.Column[contract.Pool]{
		{Head: "NAME", Cell: func(x contract.Pool) string { return format.MarkSimulated(x.Name, x.Simulated) }},
		{Head: "MODEL", Cell: func(x contract.Pool) string { return x.Model }},
		{Head: "GPUS/NODE", Right: true, Cell: gpusOfNode},
		{Head: "MEMORY", Right: true, Cell: func(x contract.Pool) string { return format.GiB(x.GPUMemoryMiB) }},
		{Head: "NODES", Right: true,
			Cell: func(x contract.Pool) string { return fmt.Sprintf("%d–%d", x.MinNodes, x.MaxNodes) }},
		{Head: "FREE GPUS", Right: true, Cell: freeOf},
		{Head: "$/NODE-H", Right: true, Cell: func(x contract.Pool) string { return format.Money(x.PricePerNodeHour) }},
		{Head: "BOOT P95", Right: true,
			Cell: func(x contract.Pool) string { return fmt.Sprintf("%.0fs", x.BootP95Seconds) }},
		{Head: "STATE", Cell: func(x contract.Pool) string { return State(x, "") }},
		{Head: "ID", Cell: func(x contract.Pool) string { return x.ID }, Wide: true},
		{Head: "LAST FAILURE", Cell: func(x contract.Pool) string { return format.Failure(x.Failing) }, Wide: true},
		{Head: "SOURCES", Cell: sourcesOf, Wide: true},
		{Head: "WARM HOLD", Right: true,
			Cell: func(x contract.Pool) string { return format.Seconds(x.WarmHoldSeconds) },
			Wide: true},
		{Head: "IDLE RELEASE", Right: true,
			Cell: func(x contract.Pool) string { return format.Seconds(x.IdleReleaseSeconds) },
			Wide: true},
		{Head: "MAX LEASE", Right: true,
			Cell: func(x contract.Pool) string { return format.Seconds(x.MaxLeaseSeconds) },
			Wide: true},
		{Head: "CLEANING", Right: true, Cell: func(x contract.Pool) string { return format.Seconds(x.CleaningSeconds) },
			Wide: true},
		{Head: "IDLE GPUS", Cell: idlePolicyText, Wide: true},
		{Head: "MAX CREATES", Right: true, Cell: func(x contract.Pool) string {
			return fmt.Sprintf("%d in %s", x.MaxCreates, format.Seconds(x.CreateWindow))
		}, Wide: true},
		{Head: "ONLINE/BATCH", Cell: splitText, Wide: true},
		{Head: "USE", Cell: func(x contract.Pool) string { return x.Use }, Wide: true},
		{Head: "ACCESS", Cell: func(x contract.Pool) string { return x.Access }, Wide: true},
		{Head: "ISOLATION", Cell: func(x contract.Pool) string { return x.Isolation }, Wide: true},
		{Head: "MIN DRIVER", Cell: func(x contract.Pool) string { return format.OrDash(x.MinDriver) }, Wide: true},
		{Head: "LABELS", Cell: func(x contract.Pool) string { return format.OrDash(labels.Text(x.Labels)) }, Wide: true},
		{Head: "TAINTS", Cell: func(x contract.Pool) string { return format.OrDash(strings.Join(x.Taints, " ")) },
			Wide: true},
		{Head: "HOLDERS", Cell: holdersText, Wide: true},
	},
}

// gpusOfNode counts the GPUs of a node, and the shares of each where they are shared.
func gpusOfNode(x contract.Pool) string {
	if x.SharesPerGPU < 2 {
		return strconv.Itoa(x.GPUsPerNode)
	}
	return fmt.Sprintf("%d (%d×%d)", x.GPUsPerNode, x.GPUsPerNode/x.SharesPerGPU, x.SharesPerGPU)
}

// freeOf says how many GPUs of a pool's live nodes are free.
func freeOf(x contract.Pool) string {
	if x.GPUCounts == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", x.GPUCounts.Free, x.GPUCounts.Total)
}

// idlePolicyText says what becomes of allocations whose GPUs are idle.
func idlePolicyText(x contract.Pool) string {
	if x.IdleWarnAfter == 0 {
		return "-"
	}
	text := "warned after " + format.Seconds(x.IdleWarnAfter)
	if x.IdleReclaimAfter > 0 {
		text += ", reclaimed after " + format.Seconds(x.IdleReclaimAfter)
	}
	return text
}

// holdersText says whose the work of an observed pool is: the first rule that fits counts.
func holdersText(x contract.Pool) string {
	var all []string
	for _, h := range x.Holders {
		var names []string
		for _, part := range [][2]string{{"account", h.Account}, {"user", h.User}, {"namespace", h.Namespace},
			{"queue", h.Queue}} {
			if part[1] != "" {
				names = append(names, part[0]+" "+part[1])
			}
		}
		all = append(all, strings.Join(names, ", ")+": "+h.Organization)
	}
	if x.DefaultHolder != "" {
		all = append(all, "others: "+x.DefaultHolder)
	}
	return format.OrDash(strings.Join(all, "; "))
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
		text := fmt.Sprintf("%s %s boots %.0fs/%.0fs (%d seen)", format.Source(s.Provisioner, s.Region, s.InstanceType),
			format.Money(s.PricePerNodeHour),
			s.BootP50Seconds, s.BootP95Seconds, s.BootSamples)
		if s.Stopped != "" {
			text += " stopped: " + s.Stopped
		} else if !s.BlockedUntil.IsZero() {
			text += " no stock until " + format.Time(s.BlockedUntil)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// State is a word or two on a pool; paused is why nothing speculative is warmed
// though it is not paused itself; empty: it is.
func State(x contract.Pool, paused string) string {
	stopped := slices.IndexFunc(x.Sources, func(s contract.SourceState) bool { return s.Stopped != "" })
	switch {
	case x.Recovering:
		return "recovering"
	case !x.NoWorkerSince.IsZero():
		return "no worker since " + format.Time(x.NoWorkerSince)
	case x.Failing != nil:
		return "failing"
	case stopped >= 0 && len(x.Sources) == 1:
		return "stopped: " + x.Sources[stopped].Stopped
	case !x.BlockedUntil.IsZero():
		return "no stock until " + format.Time(x.BlockedUntil)
	case !x.CappedUntil.IsZero():
		return "creation capped until " + format.Time(x.CappedUntil)
	case x.Paused:
		return "pre-warming paused"
	default:
		return cmp.Or(paused, "ok")
	}
}
