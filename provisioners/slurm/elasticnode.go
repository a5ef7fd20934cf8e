package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// elasticNode is a node as scontrol shows it, which says what sinfo does not: since when
// it is idle.
type elasticNode struct {
	name              string
	partitions        []string
	features          []string
	state             []string // the base state and its flags
	gres, used        string
	cpus, cpusTaken   int
	lastBusy, bootNow time.Time
	reason            string
}

var nodeField = regexp.MustCompile(`(?:^| )(NodeName|CPUAlloc|CPUTot|AvailableFeatures|Gres|GresUsed|State|` +
	`Partitions|LastBusyTime|BootTime)=(\S*)`)

var nodeReason = regexp.MustCompile(` Reason=(.*)$`)

// listElasticNodes asks for the nodes of those names, or for all. Slurm complains about a
// name that it hides or does not know: an answer that leaves one out in silence is cut.
func (c commands) listElasticNodes(ctx context.Context, names ...string) ([]elasticNode, error) {
	args := []string{"--oneliner", "--all", "--details", "show", "node"}
	if len(names) > 0 {
		args = append(args, strings.Join(names, ","))
	}
	output, err := c.askSlurm(ctx, provisioners.KindTransient, "", "scontrol", args...)
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var nodes []elasticNode
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "NodeName=") {
			continue
		}
		n, err := parseElasticNode(strings.TrimRight(line, " \n"))
		if err != nil {
			return nil, &provisioners.Error{Kind: provisioners.KindTransient, Message: "reading scontrol's nodes",
				Err: err}
		}
		nodes = append(nodes, n)
	}
	for _, name := range names {
		if !slices.ContainsFunc(nodes, func(n elasticNode) bool { return n.name == name }) {
			return nil, provisioners.Errorf(provisioners.KindTransient, "scontrol's answer leaves node %s out", name)
		}
	}
	slices.SortFunc(nodes, func(a, b elasticNode) int { return strings.Compare(a.name, b.name) })
	return nodes, nil
}

func parseElasticNode(line string) (elasticNode, error) {
	values := map[string]string{}
	for _, field := range nodeField.FindAllStringSubmatch(line, -1) {
		if _, seen := values[field[1]]; !seen { // what an operator wrote comes last
			values[field[1]] = field[2]
		}
	}
	n := elasticNode{name: values["NodeName"], partitions: strings.Split(values["Partitions"], ","),
		features: strings.Split(values["AvailableFeatures"], ","), gres: values["Gres"], used: values["GresUsed"],
		state: strings.Split(strings.ToLower(values["State"]), "+")}
	if reason := nodeReason.FindStringSubmatch(line); reason != nil {
		n.reason = reason[1]
	}
	var errs [4]error
	n.cpus, errs[0] = strconv.Atoi(values["CPUTot"])
	n.cpusTaken, errs[1] = strconv.Atoi(values["CPUAlloc"])
	n.lastBusy, errs[2] = parseInstant(values["LastBusyTime"])
	n.bootNow, errs[3] = parseInstant(values["BootTime"])
	if err := errors.Join(errs[:]...); err != nil || n.name == "" || values["State"] == "" {
		return elasticNode{}, fmt.Errorf("node %.60q: %w", n.name, cmp.Or(err, errors.New("a field is missing")))
	}
	return n, nil
}

// canServe reports whether the node could serve one such machine when empty.
func (n elasticNode) canServe(o Offer) bool {
	return slices.Contains(n.partitions, o.Partition) && countResource(n.gres, o.Gres) >= o.GPUs &&
		hasFeatures(n.features, o.Constraint)
}

// hasFeatures reports whether a node with the features meets the constraint: names that
// are joined by &, or by |.
func hasFeatures(features []string, constraint string) bool {
	if constraint == "" {
		return true
	}
	has := func(name string) bool { return slices.Contains(features, name) }
	if strings.Contains(constraint, "|") {
		return slices.ContainsFunc(strings.Split(constraint, "|"), has)
	}
	return !slices.ContainsFunc(strings.Split(constraint, "&"), func(name string) bool { return !has(name) })
}

// gone are the states in which a node starts nothing, whatever its power does.
var goneStates = []string{"down", "drain", "drained", "draining", "error", "fail", "failing", "future", "inval",
	"invalid_reg", "maint", "reboot_issued", "reboot_requested", "unknown", "blocked"}

// portState is the state without regard to our own work.
func (n elasticNode) portState(own ownUse) provisioners.NodeState {
	has := func(states ...string) bool {
		return slices.ContainsFunc(n.state, func(s string) bool { return slices.Contains(states, s) })
	}
	silent := has("not_responding", "no_respond")
	given := n.cpusTaken > own.cpus || countResource(n.used, "gpu") > own.gpus
	switch {
	case has(goneStates...):
		return provisioners.NodeUnavailable
	case has("powering_down", "power_down"):
		return provisioners.NodePoweringDown
	case has("powering_up", "power_up"), has("powered_down") && given: // it boots for that work in a moment
		return provisioners.NodePoweringUp
	case has("powered_down"):
		return provisioners.NodeCold
	case silent:
		return provisioners.NodeUnavailable
	case given || has("completing"):
		return provisioners.NodeTaken
	}
	return provisioners.NodeIdle
}

// isReserved reports whether a reservation of Slurm holds the node.
func (n elasticNode) isReserved() bool { return slices.Contains(n.state, "reserved") }

// message is what an operator must know of a node that starts nothing.
func (n elasticNode) message() string {
	text := fmt.Sprintf("node %s is %s", n.name, strings.ToUpper(strings.Join(n.state, "+")))
	if n.reason != "" {
		text += " (" + truncateText(n.reason) + ")"
	}
	if slices.Contains(n.state, "down") {
		text += "; once its cause is gone an administrator brings it back with: scontrol update NodeName=" + n.name +
			" State=POWER_DOWN_FORCE && scontrol update NodeName=" + n.name + " State=RESUME"
	}
	return text
}
