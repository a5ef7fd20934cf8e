package placement

import (
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
		if x := s.promisedAt(at); x.free >= least && !s.keepsOff(s.k.nodes[at]) {
			all = append(all, x)
		}
	}
	return all
}

// roomOf counts the nodes of each group with at least so many free GPUs. It must not be changed.
func (s search) roomOf(free int, promised []candidate) []int32 {
	rooms := s.k.rooms[min(free, len(s.k.rooms)-1)]
	if s.k.OneTenant || s.company.isApart() {
		rooms = s.roomBeside(free)
	}
	if len(promised) == 0 {
		return rooms
	}
	rooms = slices.Clone(rooms)
	for _, x := range promised {
		if x.free >= free {
			rooms[s.k.nodes[x.at].group]++
		}
	}
	return rooms
}

// roomBeside counts the plain nodes of each group with so many free GPUs, without those that somebody keeps off.
func (s search) roomBeside(free int) []int32 {
	rooms := make([]int32, len(s.k.groups))
	for _, n := range s.k.nodes {
		if n.listed.usable && !n.listed.promised && n.listed.free >= free && !s.keepsOff(n) {
			rooms[n.group]++
		}
	}
	return rooms
}

// tightestGroup is the group with the fewest nodes with room in which the whole gang fits.
func (s search) tightestGroup(shape capacity.Shape, promised []candidate) *group {
	best, least := -1, int32(0)
	rooms, full := s.roomOf(shape.Least(), promised), s.roomOf(shape.PerNode, promised)
	for i, room := range rooms {
		if int(room) < shape.Nodes || best >= 0 && room >= least || int(full[i]) < shape.Full() {
			continue
		}
		if best, least = i, room; int(room) == shape.Nodes {
			break // no other is tighter
		}
	}
	if best < 0 {
		return nil
	}
	return &s.k.groups[best]
}

// inGroup lists the nodes of a group with room.
func (s search) inGroup(g *group, least int, promised []candidate) []candidate {
	var all []candidate
	for at := g.lo; at < g.hi; at++ {
		l := s.k.nodes[at].listed
		if l.usable && !l.promised && l.free >= least && !s.keepsOff(s.k.nodes[at]) {
			all = append(all, s.candidateAt(at, l.free))
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
	rooms := s.roomOf(shape.PerNode, promised)
	total := 0
	for _, room := range rooms {
		total += int(room)
	}
	if total < shape.Nodes {
		return s.everywhere(shape, promised)
	}
	var all []candidate
	for room := slices.Max(rooms); room > 0 && len(all) < shape.Nodes; room-- {
		for i := range rooms {
			if rooms[i] == room && len(all) < shape.Nodes {
				all = append(all, s.inGroup(&s.k.groups[i], shape.PerNode, promised)...)
			}
		}
	}
	return all
}

// everywhere lists the tightest nodes with room for a gang, wherever they are.
func (s search) everywhere(shape capacity.Shape, promised []candidate) []candidate {
	if s.near != nil {
		return s.withRoom(shape.Least())
	}
	all := slices.Clone(promised)
	for warm := range s.k.plain {
		for free := shape.Least(); free <= s.k.GPUs; free++ {
			listed := 0
			set := s.k.plain[warm][free]
			for at := set.next(0); at >= 0 && listed < shape.Nodes; at = set.next(at + 1) {
				if !s.keepsOff(s.k.nodes[at]) {
					all = append(all, candidate{at, 0, warm, free})
					listed++
				}
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
