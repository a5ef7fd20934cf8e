package txn

import (
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
)

// StayOffFailed returns a job whose attempt, with these ranks, has failed, once it is kept off those of its nodes that
// failed: that are lost or unhealthy by now, or whose daemon has lost the work. Where the pool would then have too few
// nodes that it may use, however many of them are free, it may have them again.
func StayOffFailed(p *PoolTx, j job.Job, ranks []job.Rank) job.Job {
	for _, r := range ranks {
		n, known := p.FindNode(r.NodeID)
		lost := r.State == job.RankEnded && r.End.Code == job.Lost
		if !known || !lost && !isOutOfUse(n) {
			continue
		}
		if next := j.Avoid(n.ID); countUsable(p, next) >= j.Shape.Nodes {
			j = next
		}
	}
	return j
}

// isOutOfUse reports whether a node has failed; one that an operator keeps has not.
func isOutOfUse(n node.Node) bool {
	return n.State() == node.Lost || n.State() == node.Quarantined && !n.Kept()
}

// countUsable counts the slots on which a job may run once they are free: with a node that it may use, or with one that
// is made for it.
func countUsable(p *PoolTx, j job.Job) int {
	boots := MayBoot(j, p.Pool.Pool)
	usable := map[int]bool{}
	for slot := range p.Pool.MaxNodes {
		usable[slot] = boots
	}
	for _, n := range p.Nodes.Rows {
		if _, there := usable[n.Slot]; there && !node.Machine.Terminal(n.State()) {
			usable[n.Slot] = MayUse(j, p.Pool.Pool, *n) && (boots || !isOutOfUse(*n))
		}
	}
	count := 0
	for _, is := range usable {
		if is {
			count++
		}
	}
	return count
}
