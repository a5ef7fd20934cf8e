package placement

import (
	"cmp"
	"slices"
)

// kind is the index of the nodes that are alike, in the order of group and id.
type kind struct {
	Kind
	nodes    []*node
	groups   []group
	rooms    [][]int32    // plain nodes with at least so many free GPUs, of each group
	plain    [2][]*bitset // usable and without promises: by warmth, then by free GPUs
	promised *bitset      // usable, with promises: each has to be looked at
	open     []*bitset    // shared devices that may take more, by load
}

// group is a run of nodes that are near each other.
type group struct{ lo, hi int }

func compareKinds(a, b Kind) int {
	return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Model, b.Model), cmp.Compare(a.GPUs, b.GPUs),
		cmp.Compare(a.MemoryMiB, b.MemoryMiB), cmp.Compare(a.Labels, b.Labels), cmp.Compare(a.Taints, b.Taints),
		compareBools(a.Shared, b.Shared), compareBools(a.OneTenant, b.OneTenant))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// rebuild makes the index anew after nodes came.
func (k *kind) rebuild() {
	slices.SortFunc(k.nodes, func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.ID, b.ID))
	})
	for w := range k.plain {
		k.plain[w] = make([]*bitset, k.GPUs+1)
		for f := range k.plain[w] {
			k.plain[w][f] = newBitset(len(k.nodes))
		}
	}
	k.promised = newBitset(len(k.nodes))
	k.open, k.groups = nil, nil
	if k.Shared {
		k.open = make([]*bitset, loadBuckets)
		for b := range k.open {
			k.open[b] = newBitset(len(k.nodes) * k.GPUs)
		}
	}
	for i, n := range k.nodes {
		n.at, n.kind, n.listed = i, k, listing{}
		if i == 0 || n.Group != k.nodes[i-1].Group {
			k.groups = append(k.groups, group{lo: i})
		}
		n.group = len(k.groups) - 1
		k.groups[n.group].hi = i + 1
	}
	k.rooms = make([][]int32, k.GPUs+1)
	for f := range k.rooms {
		k.rooms[f] = make([]int32, len(k.groups))
	}
}

// addRoom counts a plain node with so many free GPUs into its group, or out of it.
func (k *kind) addRoom(n *node, free int, more int32) {
	for _, room := range k.rooms[:free+1] {
		room[n.group] += more
	}
}

// list brings a node's place in the index up to date.
func (k *kind) list(n *node, l listing) {
	if l == n.listed {
		return
	}
	k.unlist(n)
	n.listed = l
	switch {
	case !l.usable:
	case l.promised:
		k.promised.add(n.at)
	default:
		k.plain[l.warm][l.free].add(n.at)
		k.addRoom(n, l.free, 1)
	}
}

func (k *kind) unlist(n *node) {
	switch was := n.listed; {
	case !was.usable:
	case was.promised:
		k.promised.remove(n.at)
	default:
		k.plain[was.warm][was.free].remove(n.at)
		k.addRoom(n, was.free, -1)
	}
}

// meets reports whether nodes of the kind can serve the request when nothing is on them,
// one node at a time.
func (k *kind) meets(r Request) bool {
	if r.Pool != "" && r.Pool != k.Pool || r.Model != "" && r.Model != k.Model || r.MemoryMiB > k.MemoryMiB ||
		r.shape().PerNode > k.GPUs {
		return false
	}
	if r.isPart() && (!k.Shared || r.Part.MemoryMiB > k.MemoryMiB) {
		return false
	}
	return r.Allows(k.Labels, k.Taints)
}
