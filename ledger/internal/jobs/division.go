package jobs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// readDivision finds whether nodes of the pool are for one organization at a time and several are there, and whose work
// may be left of on them.
func readDivision(r ledger.Reader, q *queue, live []job.Job) error {
	p := q.pool.Pool.Pool
	if !slices.ContainsFunc(q.pool.Nodes, func(n node.Node) bool { return n.Isolation.Mixes(p.Isolation) }) {
		return nil
	}
	organizations := map[string]bool{}
	for _, j := range live {
		organizations[j.OrganizationID] = true
	}
	for _, a := range q.pool.Allocations {
		organizations[a.OrganizationID] = true
	}
	var left []string
	for _, c := range q.pool.Pool.Cleaning {
		left = append(left, c.ID)
	}
	if len(left) > 0 {
		var err error
		if q.left, err = r.Holders(left); err != nil {
			return fmt.Errorf("reading whose work may be left of: %w", err)
		}
	}
	for _, id := range q.left {
		organizations[id] = true
	}
	if q.divides = len(organizations) > 1; !q.divides {
		return nil
	}
	var err error
	if q.resides, err = txn.ReadResidents(r, q.pool); err != nil {
		return fmt.Errorf("asking who is on the nodes of pool %s: %w", q.pool.Pool.Name, err)
	}
	return nil
}

// tenantBeside is for whom an allocation counts where nodes are for one organization at a time: where its holder is not
// let in, it keeps nobody away.
func tenantBeside(q queue, a allocation.Allocation) string {
	if !q.divides {
		return ""
	}
	for _, slot := range a.Slots {
		if q.resides.Bars(slot, a.OrganizationID) {
			return q.resides.Of(slot)
		}
	}
	return a.OrganizationID
}

// blockedByDivision says of a job that waits for GPUs that it is not let in on nodes where others are.
func blockedByDivision(r ledger.Reader, p ledger.PoolState, e *ledger.Explanation, j job.Job) error {
	residents, err := txn.ReadResidents(r, p)
	if err != nil {
		return fmt.Errorf("asking who is on the nodes of pool %s: %w", p.Pool.Name, err)
	}
	b := ledger.Blocker{Code: "isolation", Fix: "wait for the others; an operator finds in docs/node.md#sessions how a " +
		"node keeps organizations apart"}
	for _, n := range p.Nodes {
		if residents.Bars(n.Slot, j.OrganizationID) && txn.MayUse(j, p.Pool.Pool, n) {
			b.Evidence = append(b.Evidence, n.ID+": its isolation is "+string(n.Isolation))
		}
	}
	if len(b.Evidence) == 0 {
		return nil
	}
	b.Message = fmt.Sprintf("It does not start on %s of its pool: another organization is there, and the pool "+
		"asks for the isolation %s where two share a node.", phrase.Count(len(b.Evidence), "node"),
		cmp.Or(p.Pool.Isolation, capacity.IsolationUser))
	e.Blockers = append(e.Blockers, b)
	return nil
}
