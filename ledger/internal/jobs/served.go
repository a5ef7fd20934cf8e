package jobs

import (
	"fmt"
	"slices"

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
func silentDaemon(ids []string) ledger.Blocker {
	return ledger.Blocker{Code: ledger.WaitsForDaemon, Message: fmt.Sprintf("The daemon of %s of its nodes has said "+
		"nothing for %s: what the job does there is not known, and it is told nothing, before the daemon is back.",
		phrase.Count(len(ids), "node"), phrase.Length(ledger.SilentAfter)), Evidence: ids,
		Fix: "forewarm nodes show " + ids[0]}
}

// noDaemon says that a job waits for daemons that are not there.
func noDaemon(ids []string) ledger.Blocker {
	return ledger.Blocker{Code: "no_daemon", Message: fmt.Sprintf("No daemon is connected on %s of its nodes, and "+
		"daemons start jobs. The attempt is given up %s after its nodes were ready.", phrase.Count(len(ids), "node"),
		phrase.Length(startWithin)), Evidence: ids, Fix: "forewarm nodes join " + ids[0]}
}
