package slurm

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/cli/app"
)

// facts are what a cluster says of itself, to anybody.
type facts struct {
	version    string
	user       string
	config     settings
	partitions []settings
	nodes      []node
	adminLevel string // Administrator, Operator or None; empty when there is nobody to ask
	accounted  bool   // accounting knows the user
	accounting error  // why sacct does not answer; nil when it does
}

// node is a node that Slurm shows. One without power may be hidden.
type node struct {
	name       string
	partitions []string
	states     []string
	gpus       int
	model      string
	reason     string
}

// readFacts asks the cluster. Each question is one that changes nothing.
func readFacts(ctx context.Context, c app.SlurmCluster) (facts, error) {
	f, err := readNodes(ctx, c)
	if err != nil {
		return f, err
	}
	if f.user, err = c.User(ctx); err != nil {
		return f, err
	}
	// Where there is no accounting, both fail, and say it.
	if levels, err := c.Run(ctx, "sacctmgr", "--noheader", "--parsable2", "show", "user", f.user,
		"format=User,AdminLevel"); err == nil {
		_, level, known := strings.Cut(strings.TrimSpace(levels), "|")
		f.adminLevel, f.accounted = cmp.Or(level, "None"), known
	}
	_, f.accounting = c.Run(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--starttime=now-1minutes",
		"--format=JobID")
	return f, ctx.Err()
}

// readNodes asks for what is needed to tell which nodes may power down.
func readNodes(ctx context.Context, c app.SlurmCluster) (facts, error) {
	var f facts
	version, err := c.Run(ctx, "scontrol", "--version")
	if err != nil {
		return f, err
	}
	f.version = strings.TrimSpace(version)
	config, err := c.Run(ctx, "scontrol", "show", "config")
	if err != nil {
		return f, err
	}
	partitions, err := c.Run(ctx, "scontrol", "--oneliner", "--all", "show", "partition")
	if err != nil {
		return f, err
	}
	nodes, err := c.Run(ctx, "scontrol", "--oneliner", "--all", "show", "node")
	if err != nil {
		return f, err
	}
	f.config, f.partitions = parseConfig(config), parseOneLiners(partitions)
	for _, s := range parseOneLiners(nodes) {
		if s.get("NodeName") != "" {
			f.nodes = append(f.nodes, newNode(s))
		}
	}
	if len(f.config) == 0 || len(f.partitions) == 0 {
		return f, fmt.Errorf("scontrol says nothing of the cluster: %.80q", config)
	}
	return f, nil
}

func newNode(s settings) node {
	n := node{name: s.get("NodeName"), partitions: strings.Split(s.get("Partitions"), ","), reason: s.get("Reason"),
		states: strings.Split(strings.ToLower(strings.TrimRight(s.get("State"), "*~#!%$@^-")), "+")}
	n.gpus, n.model = countGPUs(s.get("Gres"))
	return n
}

var (
	inBrackets = regexp.MustCompile(`\([^)]*\)`)
	gpuGres    = regexp.MustCompile(`^gpu(?::([A-Za-z0-9_.-]*[A-Za-z_.-][A-Za-z0-9_.-]*))?(?::([0-9]+))?$`)
)

// countGPUs reads a node's Gres, such as gpu:a100:4(S:0-1),nic:2.
func countGPUs(gres string) (count int, model string) {
	for item := range strings.SplitSeq(inBrackets.ReplaceAllString(gres, ""), ",") {
		found := gpuGres.FindStringSubmatch(strings.TrimSpace(item))
		if found == nil {
			continue
		}
		n, err := strconv.Atoi(cmp.Or(found[2], "1"))
		if err == nil {
			count += n
		}
		model = cmp.Or(model, found[1])
	}
	return count, model
}

func (n node) is(state string) bool { return slices.Contains(n.states, state) }

// isDark reports whether the node has no power now, or is losing it.
func (n node) isDark() bool {
	return n.is("powered_down") || n.is("powering_down") || n.is("power_down")
}

// powerSaving reports whether Slurm powers nodes down here at all.
func (f facts) powerSaving() bool {
	return f.config.get("SuspendProgram") != "" && f.config.get("ResumeProgram") != ""
}

// suspendTime is after how many seconds without work a node is powered down. It
// is false for a node that always stays up.
func (f facts) suspendTime(n node) (int64, bool) {
	if !f.powerSaving() || f.isExcluded(n) {
		return 0, false
	}
	longest, own := int64(0), false
	for _, p := range f.partitions { // those that have one of their own go before the cluster's, the longest first
		if p.get("SuspendTime") == "" || !slices.Contains(n.partitions, p.get("PartitionName")) {
			continue
		}
		seconds, finite := p.seconds("SuspendTime")
		if !finite {
			return 0, false
		}
		longest, own = max(longest, seconds), true
	}
	if own {
		return longest, true
	}
	return f.config.seconds("SuspendTime")
}

// isExcluded reports whether SuspendExcNodes or SuspendExcParts names the node. A
// list with a count, c[1-4]:2, keeps some of its nodes up, but no certain one.
func (f facts) isExcluded(n node) bool {
	for _, item := range splitOutside(f.config.get("SuspendExcNodes")) {
		if hosts, err := expandItem(item); err == nil && slices.Contains(hosts, n.name) {
			return true
		}
	}
	for item := range strings.SplitSeq(f.config.get("SuspendExcParts"), ",") {
		if item != "" && slices.Contains(n.partitions, item) {
			return true
		}
	}
	return false
}

// hiddenNodes is how many nodes of a partition Slurm does not show.
func (f facts) hiddenNodes(p settings) int {
	total, _ := p.number("TotalNodes")
	for _, n := range f.nodes {
		if slices.Contains(n.partitions, p.get("PartitionName")) {
			total--
		}
	}
	return max(0, total)
}
