package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/cli/format"
	"github.com/forewarm/forewarm/contract"
)

// totals are what the GPUs of one model come to, real and simulated ones apart.
type totals struct {
	model     string
	simulated bool

	gpus, held, unhealthy int
	reporting             int // GPUs that tell what they do
	use                   int // the sum of their use in percent
	used, memory          int // MiB, of GPUs that tell how much is used
	watts                 float64
	idle                  float64 // what those cost an hour that do nothing
	currency              string
}

// summary counts nodes, and tells for each model how many of its GPUs there are, what they do,
// and what those cost that do nothing.
func summary(rows []row) string {
	nodes := map[string]bool{}
	var all []*totals
	for _, r := range rows {
		nodes[r.NodeID] = true
		simulated := r.Simulated || r.Seen != nil && r.Seen.Simulated
		at := slices.IndexFunc(all, func(t *totals) bool { return t.model == r.Model && t.simulated == simulated })
		if at < 0 {
			at = len(all)
			all = append(all, &totals{model: r.Model, simulated: simulated})
		}
		all[at].add(r)
	}
	slices.SortFunc(all, func(a, b *totals) int { return cmp.Compare(a.model, b.model) })
	lines := []string{format.Count(len(nodes), "node") + ", " + format.Count(len(rows), "GPU")}
	for _, t := range all {
		lines = append(lines, t.String())
	}
	return strings.Join(lines, "\n")
}

// add counts a GPU.
func (t *totals) add(r row) {
	t.gpus++
	if r.AllocationID != "" {
		t.held++
	}
	if r.Health == "unhealthy" {
		t.unhealthy++
	}
	if c := r.IdleCostPerHour; c != nil {
		t.idle, t.currency = t.idle+r.idleCost(), c.Currency
	}
	if r.Seen == nil || r.Share != nil && *r.Share > 0 { // what a GPU does is told of each share
		return
	}
	if r.Seen.Utilization != nil {
		t.reporting++
		t.use += *r.Seen.Utilization
	}
	if r.Seen.MemoryUsedMiB != nil {
		t.used, t.memory = t.used+*r.Seen.MemoryUsedMiB, t.memory+memoryOf(r)
	}
	if r.Seen.Power != nil {
		t.watts += *r.Seen.Power
	}
}

// memoryOf is how much memory the whole GPU has, in MiB.
func memoryOf(r row) int {
	if r.Share != nil && r.Seen.MemoryMiB != nil {
		return *r.Seen.MemoryMiB
	}
	return r.MemoryMiB
}

// String is a line that says how many GPUs of the model there are, and one that says what those
// do of which that is known.
func (t *totals) String() string {
	text := fmt.Sprintf("%d× %s: %d held", t.gpus, t.name(), t.held)
	if t.unhealthy > 0 {
		text += fmt.Sprintf(", %d unhealthy", t.unhealthy)
	}
	if t.currency != "" {
		cost := contract.Money{Amount: strconv.FormatFloat(t.idle, 'f', 2, 64), Currency: t.currency}
		text += ", idling costs " + format.Money(cost) + " an hour"
	}
	var known []string
	if t.reporting > 0 {
		known = append(known, fmt.Sprintf("mean use %d%% of %d that report", t.use/t.reporting, t.reporting))
	}
	if t.memory > 0 {
		known = append(known, fmt.Sprintf("%s of %s used", gibibytes(t.used), gibibytes(t.memory)))
	}
	if t.watts > 0 {
		known = append(known, fmt.Sprintf("%.0f W", t.watts))
	}
	return strings.TrimSuffix(text+"\n   "+strings.Join(known, ", "), "\n   ")
}

// name is the model, marked if it is simulated and does not say so itself.
func (t *totals) name() string {
	if strings.HasPrefix(t.model, simulatedMark(true)) {
		return t.model
	}
	return simulatedMark(t.simulated) + format.OrDash(t.model)
}

// simulatedMark goes before what is simulated.
func simulatedMark(simulated bool) string {
	if simulated {
		return "SIM "
	}
	return ""
}
