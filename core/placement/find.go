package placement

import (
	"cmp"
	"slices"
	"time"
)

// Find returns where the request can start now and hold its GPUs until an instant, with
// no promise delayed; false if it can nowhere. Of the nodes that fit it takes those with
// more of the labels that it prefers, then those with the smallest GPUs, then cool
// before warm ones, then the tightest.
func (c *Cluster) Find(r Request, now, until time.Time) (Placement, bool) {
	kinds, near := c.kindsFor(r), c.vicinityOf(r.Company.Beside)
	for _, k := range kinds {
		s := search{c, k, now.UnixNano(), until.UnixNano(), r.Company, near}
		if p, ok := s.find(r); ok {
			return p, true
		}
	}
	return c.findAcross(kinds, r, search{c, nil, now.UnixNano(), until.UnixNano(), r.Company, near})
}

// kindsFor returns the kinds that meet a request, the best first.
func (c *Cluster) kindsFor(r Request) []*kind {
	r.Company = Company{} // which says nothing of kinds
	if known, ok := c.matching[r]; ok {
		return known
	}
	var all []*kind
	preferred := map[*kind]int{}
	for _, k := range c.kinds {
		if k.meets(r) {
			all = append(all, k)
			preferred[k], _ = k.Labels.Covers(r.Prefers)
		}
	}
	slices.SortStableFunc(all, func(a, b *kind) int {
		return cmp.Or(cmp.Compare(preferred[b], preferred[a]), cmp.Compare(a.MemoryMiB, b.MemoryMiB))
	})
	if len(c.matching) >= mostRequests {
		clear(c.matching)
	}
	c.matching[r] = all
	return all
}

// mostRequests bounds how many different requests are remembered.
const mostRequests = 1 << 14

// search looks for room on the nodes of one kind.
type search struct {
	c          *Cluster
	k          *kind
	now, until instant
	company    Company
	near       *vicinity // nil: nowhere
}

// keepsOff reports whether somebody is on the node with whom the request may not share it.
func (s search) keepsOff(n *node) bool { return n.shunsDuring(s.company, s.now, s.until, s.now) }

// candidateAt is a node with so many GPUs free.
func (s search) candidateAt(at, free int) candidate {
	n := s.k.nodes[at]
	return candidate{at, s.near.distance(n), n.listed.warm, free}
}

func (s search) find(r Request) (Placement, bool) {
	shape := r.shape()
	switch {
	case r.isPart():
		if spot, ok := s.findShared(r.Part); ok {
			return Placement{spot}, true
		}
		spot, ok := s.findOne(1)
		return Placement{spot}, ok
	case shape.Nodes == 1:
		spot, ok := s.findOne(shape.PerNode)
		return Placement{spot}, ok
	default:
		return s.findGang(shape, r.Near)
	}
}

// candidate is a node with room for at least some of what is asked.
type candidate struct {
	at, far, warm, free int
}

// compareCandidates puts the near nodes first, and of these the tightest of the cool ones.
func compareCandidates(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.warm, b.warm), cmp.Compare(a.free, b.free),
		cmp.Compare(a.at, b.at))
}

// findOne returns the tightest node with g free GPUs.
func (s search) findOne(g int) (Spot, bool) {
	best, found := s.plainOne(g)
	for at := s.k.promised.next(0); at >= 0; at = s.k.promised.next(at + 1) {
		x := s.promisedAt(at)
		if x.free >= g && !s.keepsOff(s.k.nodes[at]) && (!found || compareCandidates(x, best) < 0) {
			best, found = x, true
		}
	}
	if !found {
		return Spot{}, false
	}
	return Spot{Node: s.k.nodes[best.at].ID, GPUs: g}, true
}

func (s search) plainOne(g int) (candidate, bool) {
	if s.near != nil {
		all := s.withRoom(g)
		if len(all) == 0 {
			return candidate{}, false
		}
		return all[0], true
	}
	for warm := range s.k.plain {
		for free := g; free <= s.k.GPUs; free++ {
			set := s.k.plain[warm][free]
			for at := set.next(0); at >= 0; at = set.next(at + 1) {
				if !s.keepsOff(s.k.nodes[at]) {
					return candidate{at, 0, warm, free}, true
				}
			}
		}
	}
	return candidate{}, false
}

// promisedAt is what a node with promises has room for until the search's end.
func (s search) promisedAt(at int) candidate {
	n := s.k.nodes[at]
	return s.candidateAt(at, n.freeDuring(s.now, s.until, s.now))
}
