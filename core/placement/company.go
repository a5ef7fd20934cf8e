package placement

import "slices"

// Company is beside whom a request may be, and wants to be. Who has no name and asks for nothing is alone: the zero
// Company.
type Company struct {
	Names  Set // by which others stay apart from it, or come to it
	Apart  Set // it shares no node with who has one of these names
	Beside Set // nodes come first on which somebody has one of these names, then those near such nodes
	// Tenant is for whom it is, where a node may be for one tenant at a time.
	Tenant string
}

// isApart reports whether there are any with whom it shares no node, wherever that is.
func (c Company) isApart() bool { return c.Names != "" || c.Apart != "" }

// shuns reports whether the two may not share a node, whichever of them says so.
func (c Company) shuns(o Company) bool { return c.Apart.overlaps(o.Names) || o.Apart.overlaps(c.Names) }

// overlaps reports whether the sets have a word in common.
func (s Set) overlaps(o Set) bool {
	if s == "" || o == "" {
		return false
	}
	mine := s.Words()
	return slices.ContainsFunc(o.Words(), func(w string) bool {
		_, found := slices.BinarySearch(mine, w)
		return found
	})
}

// shunsDuring reports whether somebody holds something of the node between two instants, or is promised it, with whom
// the company may not share it.
func (n *node) shunsDuring(c Company, from, until, now instant) bool {
	if !n.OneTenant && !c.isApart() {
		return false
	}
	shuns := func(o Company) bool { return n.OneTenant && o.Tenant != c.Tenant || o.shuns(c) }
	return slices.ContainsFunc(n.holds, func(h hold) bool {
		return (from <= now || h.until > from) && shuns(h.company)
	}) ||
		slices.ContainsFunc(n.promises, func(p promise) bool {
			return p.from < until && from < p.until && shuns(p.company)
		})
}

// vicinity is where those are beside whom somebody wants to be.
type vicinity struct{ nodes, groups map[string]bool }

// vicinityOf looks for those who have one of the names.
func (c *Cluster) vicinityOf(names Set) *vicinity {
	if names == "" {
		return nil
	}
	v := &vicinity{nodes: map[string]bool{}, groups: map[string]bool{}}
	for _, h := range c.holdings {
		if !h.Company.Names.overlaps(names) {
			continue
		}
		for _, s := range h.Spots {
			v.nodes[s.Node] = true
			if group := c.nodes[s.Node].Group; group != "" {
				v.groups[group] = true
			}
		}
	}
	return v
}

// distance is how far a node is from there: 0, 1 within a group, or 2; 0 from nowhere.
func (v *vicinity) distance(n *node) int {
	switch {
	case v == nil || v.nodes[n.ID]:
		return 0
	case v.groups[n.Group]:
		return 1
	}
	return 2
}

// isKeptApart reports whether a node with free GPUs is kept from the request by who is there.
func (c *Cluster) isKeptApart(kinds []*kind, r Request) bool {
	for _, k := range kinds {
		for _, n := range k.nodes {
			if n.listed.usable && n.free() >= r.shape().Least() && n.shunsDuring(r.Company, 0, 1, 1) {
				return true
			}
		}
	}
	return false
}
