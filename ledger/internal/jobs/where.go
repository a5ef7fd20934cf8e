package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/placement"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// terms is what jobs that wait say of nodes. Nodes that differ in nothing of it are alike to the scheduler.
type terms struct {
	keys  map[string]bool // of the labels on which any that waits has a condition
	named map[string]bool // by whom jobs stay apart, or want to be near, each with its organization
	off   map[string]bool // nodes that any stays off
	// divides says that nodes are for one organization at a time: whose a job is matters.
	divides bool
}

func (q queue) terms() terms {
	t := terms{off: map[string]bool{}, keys: map[string]bool{}, named: map[string]bool{},
		divides: q.divides}
	there := map[string]bool{} // what is not does not tell nodes apart
	for _, n := range q.pool.Nodes {
		there[n.ID] = true
	}
	for _, id := range q.order {
		j := q.jobs[id]
		t.noteKeys(j)
		t.noteCompany(j)
		for _, nodes := range [][]string{j.Where.Excludes, j.Avoids} {
			for _, id := range nodes {
				if there[id] {
					t.off[id] = true
				}
			}
		}
	}
	for _, j := range q.holders {
		t.noteCompany(j)
	}
	return t
}

func (t terms) noteKeys(j job.Job) {
	for _, word := range slices.Concat(j.Where.Constraints, j.Where.Prefers) {
		if term, ok := placement.ParseTerm(word); ok {
			t.keys[term.Key] = true
		}
	}
}

// labelsOf are those of a node's labels that matter to any job.
func (t terms) labelsOf(p capacity.Pool, n node.Node) placement.Set {
	var known []string
	for _, word := range n.LabelWords(p) {
		key, _, _ := strings.Cut(word, "=")
		if t.keys[key] {
			known = append(known, word)
		}
	}
	return placement.NewSet(known...)
}

// checkExcluded refuses what cannot be the id of a node: a job would run where somebody wanted to keep it off. Whether
// there is, or was, a node of an id, only those are told who see all nodes.
func checkExcluded(tx *txn.Tx, all []string) error {
	for i, id := range all {
		if ids.Check(ids.Node, id) != nil {
			return &ledger.InvalidError{Field: fmt.Sprintf("excluded_nodes[%d]", i), Rule: fmt.Sprintf(
				"must be the id of a node, and %q is none", id),
				Fix: "see: forewarm nodes list"}
		}
		if !tx.Actor.Scope().All {
			continue
		}
		_, err := tx.Port.Node(id)
		if errors.Is(err, ledger.ErrNotFound) {
			return &ledger.InvalidError{Field: fmt.Sprintf("excluded_nodes[%d]", i), Rule: fmt.Sprintf(
				"must be the id of a node, and %q is none", id), Fix: "see: forewarm nodes list"}
		}
		if err != nil {
			return fmt.Errorf("reading node %s: %w", id, err)
		}
	}
	return nil
}

// offTaint stands for a node that some jobs stay off: all others tolerate it. No taint of an operator has a colon.
func offTaint(nodeID string) string { return "node:" + nodeID }

func (t terms) taintsOf(p capacity.Pool, n node.Node) placement.Set {
	if !t.off[n.ID] {
		return placement.NewSet(n.AllTaints(p)...)
	}
	return placement.NewSet(append([]string{offTaint(n.ID)}, n.AllTaints(p)...)...)
}

func (t terms) requestOf(j job.Job) placement.Request {
	r := txn.RequestOf(j)
	tolerated := r.Tolerates.Words()
	for id := range t.off {
		if !j.StaysOff(id) {
			tolerated = append(tolerated, offTaint(id))
		}
	}
	r.Tolerates = placement.NewSet(tolerated...)
	r.Company = t.companyOf(j)
	return r
}

// usable is how many nodes a job may run on once they are free.
type usable struct {
	nodes  int // whatever their daemons say
	served int // of those, whose daemons are there, or come with the node
}

// usableNodes counts the slots of a pool, and those on which a job may run once they are free: a slot without a node
// gets one, if the job may run on a new one.
func (q queue) usableNodes(p ledger.PoolState, j job.Job) (is usable, all int) {
	all = p.Pool.MaxNodes
	boots := txn.MayBoot(j, p.Pool.Pool)
	if boots {
		is = usable{all, all}
	}
	for _, n := range p.Nodes {
		if n.Slot >= all || node.Machine.Terminal(n.State()) {
			continue
		}
		may := txn.MayUse(j, p.Pool.Pool, n)
		switch {
		case boots && !may:
			is.nodes--
			is.served--
		case !boots && may && !isClosed(n):
			is.nodes++
			is.served++
		}
		if may && q.isSilent(n) {
			is.served--
		}
	}
	return is, all
}

// usableBy is usableNodes of a job's pool; false: it was not read. Jobs that say the same of nodes are counted once:
// thousands may wait for a thousand nodes.
func (q queue) usableBy(j job.Job) (is usable, needed int, known bool) {
	p, known := q.pools[j.PoolID]
	if !known {
		return is, 0, false
	}
	key := j.PoolID + " " + strings.Join(slices.Concat(j.Where.Constraints, []string{""}, j.Where.Tolerates, []string{""},
		j.Where.Excludes, j.Avoids), " ")
	is, counted := q.usable[key]
	if !counted {
		is, _ = q.usableNodes(p, j)
		q.usable[key] = is
	}
	return is, min(j.Shape.Nodes, p.Pool.MaxNodes), true
}

// lacksNodes reports whether too few nodes are such that a job may run there, whatever is free.
func (q queue) lacksNodes(j job.Job) bool {
	is, needed, known := q.usableBy(j)
	return known && is.nodes < needed
}

// describeLack says why too few nodes are such that a job may run there.
func (q queue) describeLack(j job.Job) string {
	is, all := q.usableNodes(q.pools[j.PoolID], j)
	text := fmt.Sprintf("it may run on %d of its pool's %s", is.nodes, phrase.Count(all, "node"))
	if j.Shape.Nodes > 1 {
		text += fmt.Sprintf(", and needs %d", j.Shape.Nodes)
	}
	var asks []string
	if len(j.Where.Constraints) > 0 {
		asks = append(asks, "asks for "+strings.Join(j.Where.Constraints, " and "))
	}
	if taints := foreignTaints(q.pools[j.PoolID], j); len(taints) > 0 {
		asks = append(asks, "does not tolerate "+strings.Join(taints, ", "))
	}
	if n := len(j.Where.Excludes) + len(j.Avoids); n > 0 {
		asks = append(asks, "stays off "+phrase.Count(n, "node"))
	}
	return ledger.ClipText(text+": it "+strings.Join(asks, ", "), 300)
}

// foreignTaints are the taints of a pool's nodes that a job does not tolerate.
func foreignTaints(p ledger.PoolState, j job.Job) []string {
	tolerates, found := placement.NewSet(j.Where.Tolerates...), []string(nil)
	note := func(taints []string) {
		for _, word := range taints {
			if _, tolerated := tolerates.Covers(placement.NewSet(word)); !tolerated {
				found = append(found, word)
			}
		}
	}
	note(p.Pool.Taints)
	for _, n := range p.Nodes {
		if !isClosed(n) {
			note(n.Taints)
		}
	}
	return placement.NewSet(found...).Words()
}
