package placement

import (
	"cmp"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// Earliest returns the first instant, now at the earliest, at which the request can start
// and hold its GPUs for so long with no promise delayed, and where; false if it never
// can, as far as is known. It takes nodes as near to each other as the request requires,
// and no nearer: when it comes to start, Find looks again.
func (c *Cluster) Earliest(r Request, now time.Time, length time.Duration) (Promised, bool) {
	shape := r.shape()
	best, bestAt := Placement(nil), never
	for _, family := range familiesFor(c.kindsFor(r), r) {
		k := family[0]
		if len(family) > 1 {
			k = merged(family)
		}
		f := forecast{k: k, shape: shape, company: r.Company, now: now.UnixNano(), length: int64(length)}
		if spots, at := f.earliest(r.Near); at < bestAt {
			best, bestAt = spots, at
		}
	}
	from := time.Unix(0, bestAt).UTC()
	return Promised{Spots: best, Company: r.Company, From: from, Until: from.Add(length)}, bestAt < never
}

// forecast looks for the earliest start on the nodes of one kind.
type forecast struct {
	k           *kind
	shape       capacity.Shape
	company     Company
	now, length instant
}

// opening is when a node could take the largest rank.
type opening struct {
	*node
	order int
	from  instant
}

func (f forecast) earliest(near Nearness) (Placement, instant) {
	if near != RequireOneGroup || f.shape.Nodes == 1 {
		return f.among(f.k.nodes)
	}
	best, bestAt := Placement(nil), never
	for _, g := range f.k.groups {
		if spots, at := f.among(f.k.nodes[g.lo:g.hi]); at < bestAt {
			best, bestAt = spots, at
		}
	}
	return best, bestAt
}

// among finds the earliest start on some of the nodes. Every rank is counted as the
// largest one.
func (f forecast) among(nodes []*node) (Placement, instant) {
	if len(nodes) < f.shape.Nodes {
		return nil, never
	}
	if f.shape.Nodes == 1 {
		return f.first(nodes)
	}
	all := make([]opening, 0, len(nodes))
	for order, n := range nodes {
		if n.Drained {
			continue
		}
		if from := n.earliest(f.shape.PerNode, f.length, f.now, f.company); from < never {
			all = append(all, opening{n, order, from})
		}
	}
	slices.SortFunc(all, func(a, b opening) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.order, b.order))
	})
	for last := f.shape.Nodes - 1; last < len(all); last++ {
		if last+1 < len(all) && all[last+1].from == all[last].from {
			continue // those of the same instant count together
		}
		if spots, ok := f.takeAt(all[:last+1], all[last].from); ok {
			return spots, all[last].from
		}
	}
	return f.afterAll(all)
}

// first returns the node that can take the one rank first.
func (f forecast) first(nodes []*node) (Placement, instant) {
	var best *node
	bestAt := never
	for _, n := range nodes {
		if n.Drained {
			continue
		}
		if from := n.earliest(f.shape.PerNode, f.length, f.now, f.company); from < bestAt {
			best, bestAt = n, from
		}
	}
	if best == nil {
		return nil, never
	}
	return Placement{{Node: best.ID, GPUs: f.shape.PerNode}}, bestAt
}

// takeAt gives each rank a node that is free from an instant on. A node may have been
// free before it and not be at it: somebody else was promised it.
func (f forecast) takeAt(all []opening, from instant) (Placement, bool) {
	var spots Placement
	for i := len(all) - 1; i >= 0 && len(spots) < f.shape.Nodes; i-- {
		n := all[i].node
		until := later(from, f.length)
		if n.freeDuring(from, until, f.now) >= f.shape.PerNode && !n.shunsDuring(f.company, from, until, f.now) {
			spots = append(spots, Spot{Node: n.ID, GPUs: f.shape.On(len(spots))})
		}
	}
	return spots, len(spots) == f.shape.Nodes
}

// afterAll is the way that is always left: when everything that is held or promised on
// these nodes is over.
func (f forecast) afterAll(all []opening) (Placement, instant) {
	from := f.now
	for _, o := range all {
		from = max(from, o.from)
		for _, h := range o.holds {
			from = max(from, h.until)
		}
		for _, p := range o.promises {
			from = max(from, p.until)
		}
	}
	spots, ok := f.takeAt(all, from)
	if !ok {
		return nil, never
	}
	return spots, from
}
