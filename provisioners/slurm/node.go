package slurm

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/provisioners"
)

// node is a node of one partition as sinfo shows it.
type node struct {
	name, partition string
	state           []string // the base state and its flags
	gres, used      string
	idleCPUs        int
	reason          string
}

var nodeColumns = []column{
	{"NodeList", 128}, {"PartitionName", 128}, {"StateComplete", 256}, {"Gres", 1024}, {"GresUsed", 1024},
	{"CPUsState", 64}, {"Reason", 256},
}

// listNodes asks for the nodes that the filter, options of sinfo, selects. Nodes that
// Slurm hides, as it does with cloud nodes without power, are not among them.
func (c *Cluster) listNodes(ctx context.Context, filter ...string) ([]node, error) {
	args := append([]string{"--Node", "--noheader", "--Format=" + formatColumns(nodeColumns)}, filter...)
	output, err := c.askSlurm(ctx, provisioners.KindTransient, "", "sinfo", args...)
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	table, whole := cutRows(output, len(nodeColumns))
	if !whole {
		return nil, provisioners.Errorf(provisioners.KindTransient, "sinfo's list of nodes is cut")
	}
	nodes := make([]node, len(table))
	for i, row := range table {
		nodes[i] = node{name: row[0], partition: row[1], state: strings.Split(strings.ToLower(row[2]), "+"),
			gres: row[3], used: row[4], idleCPUs: idleCPUs(row[5]), reason: row[6]}
	}
	return nodes, nil
}

// idleCPUs reads "allocated/idle/other/total". A node that does not say it has
// none.
func idleCPUs(text string) int {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return 0
	}
	idle, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return idle
}

var inBrackets = regexp.MustCompile(`\([^)]*\)`)

// countResource sums what a list such as gpu:a100:2(S:0-1),nic:2 has of the resource:
// gpu for all kinds, gpu:a100 for one.
func countResource(list, resource string) int {
	total := 0
	for item := range strings.SplitSeq(inBrackets.ReplaceAllString(list, ""), ",") {
		parts := strings.Split(strings.TrimSpace(item), ":")
		number, err := strconv.Atoi(parts[len(parts)-1])
		if err != nil {
			continue // "(null)", or a resource without a count
		}
		name := strings.Join(parts[:len(parts)-1], ":")
		if name == resource || strings.HasPrefix(name, resource+":") {
			total += number
		}
	}
	return total
}

// barred are the states in which a node starts nothing new. A node without power
// is not among them: Slurm boots it for the job.
var barred = []string{
	"blocked", "down", "drain", "drained", "draining", "error", "fail", "failing", "future", "inval", "invalid_reg",
	"maint",
	"powering_down", "power_down", "reboot_issued", "reboot_requested", "unknown",
}

// degraded are the states in which a job goes on running on a node that is not
// to be trusted with it.
var degraded = []string{"down", "drain", "drained", "draining", "error", "fail", "failing", "inval", "invalid_reg",
	"not_responding"}

func (n node) hasState(states []string) bool {
	return slices.ContainsFunc(n.state, func(s string) bool { return slices.Contains(states, s) })
}

// canHold reports whether the node could hold one such machine when empty.
func (n node) canHold(o Offer) bool {
	return n.partition == o.Partition && countResource(n.gres, o.Gres) >= o.GPUs
}

// freeGPUs is how many GPUs of the offer's kind the node has left for it.
func (n node) freeGPUs(o Offer) int {
	waking := slices.Contains(n.state, "powering_up") // it does not respond yet, and takes jobs
	silent := slices.Contains(n.state, "not_responding") && !waking
	reserved := slices.Contains(n.state, "reserved") && o.Reservation == ""
	if n.hasState(barred) || silent || reserved || n.idleCPUs == 0 {
		return 0
	}
	if o.Exclusive && n.state[0] != "idle" {
		return 0
	}
	return max(0, countResource(n.gres, o.Gres)-countResource(n.used, o.Gres))
}

// degradedMessage is what an operator should hear of a degraded node.
func (n node) degradedMessage() string {
	return fmt.Sprintf("node %s is %s: %s", n.name, strings.Join(n.state, "+"), n.reason)
}
