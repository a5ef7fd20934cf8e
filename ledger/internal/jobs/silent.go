package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// readSeen reads when the daemons of the nodes of some pools said something last, by pool and node.
func readSeen(r ledger.Reader, pools map[string]ledger.PoolState) (map[string]map[string]time.Time, error) {
	all := make(map[string]map[string]time.Time, len(pools))
	for _, id := range txn.SortedKeys(pools) {
		seen, err := txn.DaemonsSeen(r, pools[id].Nodes)
		if err != nil {
			return nil, fmt.Errorf("asking for the daemons of pool %s: %w", pools[id].Pool.Name, err)
		}
		all[id] = seen
	}
	return all, nil
}

// readAround reads of a job's pool what the job's own place in the queue does not tell.
func readAround(r ledger.Reader, j job.Job) (queue, error) {
	q := queue{now: r.Now(), usable: map[string]usable{}}
	p, err := r.LiveState(j.PoolID)
	if err != nil {
		return q, fmt.Errorf("reading pool %s: %w", j.PoolID, err)
	}
	q.pools = map[string]ledger.PoolState{j.PoolID: p}
	q.seen, err = readSeen(r, q.pools)
	return q, err
}

// isSilent reports whether no daemon would start a job on a node now.
func (q queue) isSilent(n node.Node) bool { return ledger.IsSilent(n, q.seen[n.PoolID][n.ID], q.now) }

// onSilent reports whether the daemon of a node is silent on which somebody has GPUs.
func (q queue) onSilent(a allocation.Allocation) bool {
	return slices.ContainsFunc(q.pool.Nodes, func(n node.Node) bool {
		return slices.Contains(a.Slots, n.Slot) && q.isSilent(n)
	})
}

// lacksDaemons reports whether there are enough nodes on which a job may run, and on too few of them a daemon that
// would start it.
func (q queue) lacksDaemons(j job.Job) bool {
	is, needed, known := q.usableBy(j)
	return known && is.nodes >= needed && is.served < needed
}

// silentFor are the nodes on which a job may run, and no daemon would start it, those first whose daemon has been
// silent for the shortest time.
func (q queue) silentFor(j job.Job) (silent []node.Node) {
	p := q.pools[j.PoolID]
	for _, n := range p.Nodes {
		if q.isSilent(n) && txn.MayUse(j, p.Pool.Pool, n) {
			silent = append(silent, n)
		}
	}
	seen := q.seen[j.PoolID]
	slices.SortFunc(silent, func(a, b node.Node) int {
		return cmp.Or(seen[b.ID].Compare(seen[a.ID]), cmp.Compare(a.ID, b.ID))
	})
	return silent
}

// describeSilence says why no daemon would start a job now.
func (q queue) describeSilence(j job.Job) string {
	silent := q.silentFor(j)
	if len(silent) == 0 {
		return ""
	}
	text := q.tellSilence(silent[0])
	if others := len(silent) - 1; others > 0 {
		text += ", and of " + phrase.Count(others, "other node") + ", too"
	}
	return ledger.ClipText(text, 300)
}

// tellSilence says since when the daemon of a node has been silent.
func (q queue) tellSilence(n node.Node) string {
	if seen := q.seen[n.PoolID][n.ID]; !seen.IsZero() {
		return ledger.TellSilence(n.ID, seen, q.now)
	}
	return "no daemon has ever joined of node " + n.ID
}

// blockedBySilence says of a job that waits for GPUs that others have no daemon which would start it there.
func (q queue) blockedBySilence(e *ledger.Explanation, actor ledger.Actor, j job.Job) {
	silent := q.silentFor(j)
	if len(silent) == 0 {
		return
	}
	b := ledger.Blocker{Code: ledger.WaitsForDaemon, Message: "No job starts on " + phrase.Count(len(silent), "node") +
		" of its pool: no daemon is there, and daemons start jobs.", Fix: ledger.FixSilence(actor)}
	for _, n := range silent {
		b.Evidence = append(b.Evidence, q.tellSilence(n))
	}
	e.Blockers = append(e.Blockers, b)
}
