package jobs

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// checkServed refuses a job for a pool of which no node has ever had a daemon, though each has been up for long enough:
// nobody would start it there. Of a pool without nodes that cannot be told.
func checkServed(tx *txn.Tx, p *txn.PoolTx) error {
	var ids []string
	for n := range p.Nodes.All() {
		switch {
		case n.State() != node.Ready:
		case n.ReadyAt.After(tx.Now().Add(-ledger.JoinWithin)):
			return nil // its daemon may be about to join
		default:
			ids = append(ids, n.ID)
		}
	}
	for some := range slices.Chunk(ids, fewNodes) {
		said, err := tx.Port.PresencesOf(some)
		if err != nil || len(said) > 0 {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return &ledger.InvalidError{Field: "pool", Rule: fmt.Sprintf("must have daemons on its nodes, which start jobs: "+
		"pool %s has %s up, and no daemon has ever joined", p.Pool.Name, phrase.Count(len(ids), "node")),
		Fix: "start forewarm-node there, see: forewarm nodes join --help"}
}

// fewNodes is how many nodes are asked for at once, of which one that has a daemon is enough.
const fewNodes = 32

// silentUnder are the nodes of a job's attempt, in a state there, whose daemons are silent.
func silentUnder(r ledger.Reader, j job.Job, state job.RankState) (ids []string, err error) {
	ranks, err := r.JobRanks(j.ID, j.Attempt)
	if err != nil {
		return nil, err
	}
	var nodes []string
	for _, rank := range ranks {
		if rank.State == state {
			nodes = append(nodes, rank.NodeID)
		}
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	said, err := r.PresencesOf(nodes)
	for _, id := range nodes {
		if p, known := said[id]; !known || r.Now().Sub(p.SeenAt) > ledger.SilentAfter {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// silentDaemon says that nobody knows what a job does on some of its nodes.
func silentDaemon(j job.Job, ids []string) ledger.Blocker {
	return ledger.Blocker{Code: ledger.WaitsForDaemon, Message: fmt.Sprintf("The daemon of %s has said "+
		"nothing for %s: what the job does there is not known, and it is told nothing, before the daemon is back.",
		nodesOf(j, ids), phrase.Length(ledger.SilentAfter)), Evidence: ids,
		Fix: "forewarm nodes show " + ids[0]}
}

// unservedBlocker says of a job that has its GPUs which daemons are missing that would start it; nil: none is.
func unservedBlocker(r ledger.Reader, actor ledger.Actor, j job.Job) (*ledger.Blocker, error) {
	ids, err := silentUnder(r, j, job.Ordered)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	a, err := r.Allocation(actor.Scope(), j.AllocationID)
	if err != nil {
		return nil, fmt.Errorf("reading allocation %s: %w", j.AllocationID, err)
	}
	b := noDaemon(j, a, ids)
	return &b, nil
}

// noDaemon says that a job waits for daemons that are not there. Of those that were told to start it nobody knows
// whether they have.
func noDaemon(j job.Job, a allocation.Allocation, ids []string) ledger.Blocker {
	away := awayFrom(a, func(nodeID string) bool { return slices.Contains(ids, nodeID) })
	if len(away.told) > 0 {
		return ledger.Blocker{Code: "no_daemon", Message: fmt.Sprintf("The daemon of %s was told to start it and has said "+
			"nothing since: whether it runs there is not known, and it begins nowhere else before the daemon is back or the "+
			"node is over. With the command below it does, even if it runs.", nodesOf(j, away.told)),
			Evidence: away.told, Fix: "forewarm jobs requeue " + j.ID}
	}
	then := "is given up " + phrase.Length(startWithin) + " after its nodes were ready"
	if away.beginsElsewhere(j) {
		then = "begins elsewhere once a daemon that was here has been silent for " + phrase.Length(ledger.SilentAfter) +
			", and " + then
	}
	return ledger.Blocker{Code: "no_daemon", Message: fmt.Sprintf("No daemon is connected on %s, and daemons start "+
		"jobs. The attempt %s.", nodesOf(j, ids), then), Evidence: ids, Fix: "forewarm nodes join " + ids[0]}
}

// nodesOf says on how many of a job's nodes something is so.
func nodesOf(j job.Job, ids []string) string {
	switch {
	case j.Shape.Nodes == 1:
		return "its node"
	case len(ids) == 1:
		return "one of its nodes"
	}
	return fmt.Sprintf("%d of its nodes", len(ids))
}
