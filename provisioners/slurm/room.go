package slurm

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/forewarm/forewarm/provisioners"
)

// checkRoom returns nil when a node of the offer's partition could start one more
// placeholder now, else KindCapacity, or KindBadSpec where none ever could. Our
// own placeholders that still wait are counted; other people's are not, whose
// priorities only Slurm knows. It estimates: the pending timeout is the proof.
func (c *Cluster) checkRoom(ctx context.Context, wanted Offer, v view) error {
	for range lookAgain {
		waiting, offers := c.pendingOffers(wanted, v.jobs)
		full, err := c.checkFull(ctx, wanted, offers)
		if err != nil || full == nil {
			return err
		}
		if len(waiting) == 0 {
			return full
		}
		// What waited when the jobs were listed may have had a node when the nodes
		// were, and was then counted twice.
		if v, err = c.listJobs(ctx); err != nil {
			return err
		}
		if after, _ := c.pendingOffers(wanted, v.jobs); slices.Equal(waiting, after) {
			return full
		}
	}
	return &provisioners.Error{Kind: provisioners.KindCapacity, Scope: wanted.Partition,
		Message: "too much is starting in the partition to count"}
}

const lookAgain = 4

// checkFull says why the partition cannot start the wanted beside those that wait,
// nil when it can.
func (c *Cluster) checkFull(ctx context.Context, wanted Offer, waiting []Offer) (full, err error) {
	nodes, err := c.listNodes(ctx, "--partition="+wanted.Partition)
	if err != nil {
		return nil, err
	}
	all := append(waiting, wanted)
	if allFit(nodes, all, 0) {
		return nil, nil
	}
	hidden, err := c.countHiddenNodes(ctx, wanted.Partition, nodes)
	if err != nil {
		return nil, err
	}
	switch {
	case hidden == 0 && !slices.ContainsFunc(nodes, func(n node) bool { return n.canHold(wanted) }):
		return nil, provisioners.Errorf(provisioners.KindBadSpec, "no node of partition %s has %d of %s",
			wanted.Partition, wanted.GPUs, wanted.Gres)
	case c.config.QueueWhenFull, allFit(nodes, all, hidden):
		return nil, nil
	}
	return &provisioners.Error{Kind: provisioners.KindCapacity, Scope: wanted.Partition,
		Message: fmt.Sprintf("no node of the partition has %d of %s free", wanted.GPUs, wanted.Gres)}, nil
}

// pendingOffers are the offers of our placeholders in the same partition that have no
// node yet, so that no node shows them.
func (c *Cluster) pendingOffers(wanted Offer, jobs []job) (ids []int, offers []Offer) {
	for _, j := range jobs {
		if offer, known := c.config.findOffer(j.tags.kind); known && offer.Partition == wanted.Partition &&
			j.phase == provisioners.Booting && j.node == "" {
			ids, offers = append(ids, j.id), append(offers, offer)
		}
	}
	return ids, offers
}

// allFit reports whether all of the wanted find a place, the largest first, each
// on the node that it fills best. A hidden node takes one machine.
func allFit(nodes []node, wanted []Offer, hidden int) bool {
	slices.SortStableFunc(wanted, func(a, b Offer) int { return cmp.Compare(b.GPUs, a.GPUs) })
	taken := map[string]int{}
	for _, o := range wanted {
		best, left := "", 0
		for _, n := range nodes {
			rest := n.freeGPUs(o) - taken[n.name] - o.GPUs
			if n.partition != o.Partition || rest < 0 || o.Exclusive && taken[n.name] > 0 {
				continue
			}
			if best == "" || rest < left {
				best, left = n.name, rest
			}
		}
		switch {
		case best == "" && hidden == 0:
			return false
		case best == "":
			hidden--
		case o.Exclusive:
			taken[best] += mostGPUs * mostGPUs
		default:
			taken[best] += o.GPUs
		}
	}
	return true
}

var (
	partitionState = regexp.MustCompile(`\bState=(\S+)`)
	partitionNodes = regexp.MustCompile(`\bTotalNodes=(\d+)`)
)

// countHiddenNodes counts the partition's nodes that sinfo does not show: cloud nodes
// without power. A partition that is closed is KindCapacity.
func (c *Cluster) countHiddenNodes(ctx context.Context, partition string, shown []node) (int, error) {
	output, err := c.askSlurm(ctx, provisioners.KindTransient, "", "scontrol", "--oneliner", "--all", "show",
		"partition",
		partition)
	if err != nil {
		return 0, fmt.Errorf("looking at partition %s: %w", partition, err)
	}
	state, total := partitionState.FindStringSubmatch(output), partitionNodes.FindStringSubmatch(output)
	if state == nil || total == nil {
		return 0, provisioners.Errorf(provisioners.KindTransient, "scontrol does not say what partition %s has",
			partition)
	}
	if state[1] != "UP" {
		return 0, &provisioners.Error{Kind: provisioners.KindCapacity, Scope: partition,
			Message: "the partition is " + state[1]}
	}
	nodes, err := strconv.Atoi(total[1])
	if err != nil {
		return 0, provisioners.Errorf(provisioners.KindTransient, "partition %s has %q nodes", partition, total[1])
	}
	for _, n := range shown {
		if n.partition == partition {
			nodes--
		}
	}
	return max(0, nodes), nil
}
