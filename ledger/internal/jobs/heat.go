package jobs

import (
	"fmt"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// hotNodes are the nodes on which a job may run once they have cooled down.
func hotNodes(r ledger.Reader, j job.Job) (hot []node.Node, err error) {
	p, err := r.LiveState(j.PoolID)
	if err != nil {
		return nil, fmt.Errorf("reading pool %s: %w", j.PoolID, err)
	}
	for _, n := range p.Nodes {
		if n.State() == node.Ready && n.Heat.IsHot(r.Now()) && txn.MayUse(j, p.Pool.Pool, n) {
			hot = append(hot, n)
		}
	}
	return hot, nil
}

// blockedByHeat says that nodes are too hot, and when the first has cooled down if it gets no hotter.
func blockedByHeat(e *ledger.Explanation, hot []node.Node) {
	if len(hot) == 0 {
		return
	}
	b := ledger.Blocker{Code: "heat", Message: "No job starts on " + phrase.Count(len(hot), "node") +
		" of its pool: too hot."}
	first := hot[0].Heat.HotUntil
	for _, n := range hot {
		if n.Heat.HotUntil.Before(first) {
			first = n.Heat.HotUntil
		}
		b.Evidence = append(b.Evidence, fmt.Sprintf("%s: %d °C, until %s", n.ID, n.Heat.Celsius,
			ledger.FormatTimeSeen(n.Heat.HotUntil, e.At)))
	}
	b.ClearsAt = &ledger.Band{P10: first, P50: first, P90: first}
	e.Blockers = append(e.Blockers, b)
}
