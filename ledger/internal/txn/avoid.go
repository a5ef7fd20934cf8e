package txn

import (
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
)

// StayOffFailed returns a job whose attempt, with these ranks, has failed, once it is kept off those of its nodes that
// failed: that are lost or unhealthy by now, or whose daemon has lost the work. Where the pool would then have too few
// nodes for it, however many of them are free, it may have them again.
func StayOffFailed(p *PoolTx, j job.Job, ranks []job.Rank) job.Job {
	for _, r := range ranks {
		n, known := p.FindNode(r.NodeID)
		lost := r.State == job.RankEnded && r.End.Code == job.Lost
		if !known || !lost && !isOutOfUse(n) {
			continue
		}
		if next := j.Avoid(n.ID); p.Pool.MaxNodes-countAvoided(p, next) >= j.Shape.Nodes {
			j = next
		}
	}
	return j
}

// isOutOfUse reports whether a node has failed; one that an operator keeps has not.
func isOutOfUse(n node.Node) bool {
	return n.State() == node.Lost || n.State() == node.Quarantined && !n.Kept()
}

// countAvoided counts the slots whose nodes a job stays off.
func countAvoided(p *PoolTx, j job.Job) (count int) {
	for _, n := range p.Nodes.Rows {
		if !node.Machine.Terminal(n.State()) && j.StaysOff(n.ID) {
			count++
		}
	}
	return count
}
