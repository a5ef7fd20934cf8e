package placement

import (
	"cmp"
	"slices"

	"github.com/forewarm/forewarm/core/capacity"
)

// findGang returns nodes for all of a gang, or none.
func (s search) findGang(shape capacity.Shape, near Nearness) (Placement, bool) {
	promised := s.promisedRoom(shape.Least())
	if near != Anywhere {
		if g := s.tightestGroup(shape, promised); g != nil {
			return s.pick(s.inGroup(g, shape.Least(), promised), shape)
		}
		if near == RequireOneGroup {
			return nil, false
		}
		return s.pick(s.fromLargeGroups(shape, promised), shape)
	}
	return s.pick(s.everywhere(shape, promised), shape)
}

// promisedRoom lists the nodes with promises that have room for a gang's smallest part.
func (s search) promisedRoom(least int) []candidate {
	var all []candidate
	for at := s.k.promised.next(0); at >= 0; at = s.k.promised.next(at + 1) {
		if x := s.promisedAt(at); x.free >= least {
			all = append(all, x)
		}
	}
	return all
}

// room counts the nodes of a group with at least so many free GPUs.
func (g *group) room(free int, promised []candidate) int {
	n := 0
	for _, count := range g.counts[min(free, len(g.counts)):] {
		n += count
	}
	for _, x := range promised {
		if g.lo <= x.at && x.at < g.hi && x.free >= free {
			n++
		}
	}
	return n
}

// tightestGroup is the group with the fewest nodes with room in which the whole gang fits.
func (s search) tightestGroup(shape capacity.Shape, promised []candidate) *group {
	var best *group
	least := 0
	for i := range s.k.groups {
		g := &s.k.groups[i]
		if g.hi-g.lo < shape.Nodes {
			continue
		}
		room := g.room(shape.Least(), promised)
		if room < shape.Nodes || best != nil && room >= least {
			continue
		}
		if shape.Short == 0 || g.room(shape.PerNode, promised) >= shape.Full() {
			if best, least = g, room; room == shape.Nodes {
				break // no other is tighter
			}
		}
	}
	return best
}

// inGroup lists the nodes of a group with room.
func (s search) inGroup(g *group, least int, promised []candidate) []candidate {
	var all []candidate
	for at := g.lo; at < g.hi; at++ {
		if l := s.k.nodes[at].listed; l.usable && !l.promised && l.free >= least {
			all = append(all, candidate{at, l.warm, l.free})
		}
	}
	for _, x := range promised {
		if g.lo <= x.at && x.at < g.hi && x.free >= least {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, compareCandidates)
	return all
}

// fromLargeGroups lists nodes of as few groups as can be: large groups first, so that
// what is left over for the last one is small.
func (s search) fromLargeGroups(shape capacity.Shape, promised []candidate) []candidate {
	type sized struct {
		*group
		room int
	}
	var groups []sized
	for i := range s.k.groups {
		if room := s.k.groups[i].room(shape.PerNode, promised); room > 0 {
			groups = append(groups, sized{&s.k.groups[i], room})
		}
	}
	slices.SortStableFunc(groups, func(a, b sized) int { return cmp.Compare(b.room, a.room) })
	var all []candidate
	for _, g := range groups {
		if len(all) >= shape.Nodes {
			break
		}
		all = append(all, s.inGroup(g.group, shape.PerNode, promised)...)
	}
	if len(all) < shape.Nodes {
		return s.everywhere(shape, promised)
	}
	return all
}

// everywhere lists the tightest nodes with room for a gang, wherever they are.
func (s search) everywhere(shape capacity.Shape, promised []candidate) []candidate {
	all := slices.Clone(promised)
	for warm := range s.k.plain {
		for free := shape.Least(); free <= s.k.GPUs; free++ {
			listed := 0
			set := s.k.plain[warm][free]
			for at := set.next(0); at >= 0 && listed < shape.Nodes; at = set.next(at + 1) {
				all = append(all, candidate{at, warm, free})
				listed++
			}
		}
	}
	slices.SortFunc(all, compareCandidates)
	return all
}

// pick takes the first candidates that together hold the shape: the nodes with all
// GPUs of a rank first, then the one with fewer.
func (s search) pick(all []candidate, shape capacity.Shape) (Placement, bool) {
	if len(all) < shape.Nodes {
		return nil, false
	}
	spots := make(Placement, 0, shape.Nodes)
	short := -1
	if shape.Short > 0 {
		// The tightest node is for the smallest rank, warm or not: the others need more.
		short = 0
		for i, x := range all {
			if x.free < all[short].free {
				short = i
			}
		}
		spots = append(spots, Spot{Node: s.k.nodes[all[short].at].ID, GPUs: shape.Least()})
	}
	for i, x := range all {
		if len(spots) == shape.Nodes {
			break
		}
		if i != short && x.free >= shape.PerNode {
			spots = append(spots, Spot{Node: s.k.nodes[x.at].ID, GPUs: shape.PerNode})
		}
	}
	if len(spots) < shape.Nodes {
		return nil, false
	}
	if short >= 0 {
		spots = append(spots[1:], spots[0])
	}
	return spots, true
}
