package placement

import "slices"

// Nodes that differ in labels, taints and whether they are for one tenant alone are of several kinds and of one family.
// A gang that accepts them all may spread over them, which takes a look at each node.

// family is the kind that a kind would be without what tells its nodes from others of the same machines.
func (k *kind) family() Kind {
	f := k.Kind
	f.Labels, f.Taints, f.OneTenant = "", "", false
	return f
}

// familiesFor groups kinds that meet a request by the family, the best kinds first; a request that
// may not spread over kinds has each alone.
func familiesFor(kinds []*kind, r Request) (families [][]*kind) {
	for _, k := range kinds {
		at := slices.IndexFunc(families, func(f []*kind) bool { return f[0].family() == k.family() })
		if at < 0 || r.Near != Anywhere || r.shape().Nodes == 1 {
			families = append(families, []*kind{k})
		} else {
			families[at] = append(families[at], k)
		}
	}
	return families
}

// merged has the nodes of several kinds in their order, and none of the index.
func merged(kinds []*kind) *kind {
	all := &kind{Kind: kinds[0].family()}
	for _, k := range kinds {
		all.nodes = append(all.nodes, k.nodes...)
	}
	return all
}

// findAcross finds nodes of several kinds for a gang that no kind alone has room for.
func (c *Cluster) findAcross(kinds []*kind, r Request, s search) (Placement, bool) {
	for _, family := range familiesFor(kinds, r) {
		if len(family) < 2 {
			continue
		}
		s.k = merged(family)
		if p, ok := s.pick(s.withRoom(r.shape().Least()), r.shape()); ok {
			return p, true
		}
	}
	return nil, false
}

// withRoom lists the nodes with so many free GPUs, cool and tight ones first.
func (s search) withRoom(least int) (all []candidate) {
	for at, n := range s.k.nodes {
		x := s.candidateAt(at, n.listed.free)
		if n.listed.promised {
			x.free = n.freeDuring(s.now, s.until, s.now)
		}
		if n.listed.usable && x.free >= least && !s.keepsOff(n) {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, compareCandidates)
	return all
}
