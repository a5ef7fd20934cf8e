package placement

// Reason is why a request does not start now.
type Reason string

// The reasons, of which the first that holds is given.
const (
	NoMatch     Reason = "no_matching_nodes" // no node has its model, memory, labels or pool, or all have taints
	TooLarge    Reason = "too_large"         // it does not fit when nothing else runs
	NotUsable   Reason = "nodes_unusable"    // it would, were nodes not drained or too hot
	NotEnough   Reason = "no_free_gpus"      // fewer GPUs are free than it needs
	Fragmented  Reason = "fragmented"        // enough are free, and too few on one node, or on nodes near each other
	KeptApart   Reason = "kept_apart"        // enough are free, and nobody is to share the nodes with who is there
	PromisedOut Reason = "promised"          // enough are free, and promised to others before it would end
)

// Refusal is why a request does not start now, with the numbers behind it.
type Refusal struct {
	Reason Reason
	Need   int // GPUs
	Free   int // GPUs on usable nodes that match
	Usable int // of them, free or not
}

// Forever reports whether no end of other work would let the request start.
func (r Refusal) Forever() bool { return r.Reason == NoMatch || r.Reason == TooLarge }

// Explain says why Find does not find a place for the request.
func (c *Cluster) Explain(r Request) Refusal {
	out := Refusal{Need: r.GPUs()}
	kinds := c.kindsFor(r)
	if len(kinds) == 0 {
		out.Reason = NoMatch
		return out
	}
	fitsEmpty, fitsUsable, fitsUnpromised := false, false, false
	for _, family := range familiesFor(kinds, r) {
		sum, unpromised, groups := kindCount{}, 0, false
		for _, k := range family {
			n := k.count()
			out.Free += n.free
			out.Usable += n.usable * k.GPUs
			sum.nodes, sum.usable = sum.nodes+n.nodes, sum.usable+n.usable
			unpromised, groups = unpromised+k.roomWithoutPromises(r), groups || k.groupHolds(r)
		}
		fitsEmpty = fitsEmpty || sum.nodes >= r.shape().Nodes && groups
		fitsUsable = fitsUsable || sum.usable >= r.shape().Nodes
		fitsUnpromised = fitsUnpromised || unpromised >= r.shape().Nodes
	}
	switch {
	case !fitsEmpty:
		out.Reason = TooLarge
	case !fitsUsable:
		out.Reason = NotUsable
	case out.Free < out.Need:
		out.Reason = NotEnough
	case fitsUnpromised && c.isKeptApart(kinds, r):
		out.Reason = KeptApart
	case fitsUnpromised:
		out.Reason = PromisedOut
	default:
		out.Reason = Fragmented
	}
	return out
}

type kindCount struct{ nodes, usable, free int }

func (k *kind) count() kindCount {
	out := kindCount{nodes: len(k.nodes)}
	for _, sets := range k.plain {
		for free, set := range sets {
			out.usable += set.count
			out.free += set.count * free
		}
	}
	out.usable += k.promised.count
	for at := k.promised.next(0); at >= 0; at = k.promised.next(at + 1) {
		out.free += k.nodes[at].free()
	}
	return out
}

// groupHolds reports whether a group has enough nodes for a gang that needs one.
func (k *kind) groupHolds(r Request) bool {
	if r.Near != RequireOneGroup {
		return true
	}
	for _, g := range k.groups {
		if g.hi-g.lo >= r.shape().Nodes {
			return true
		}
	}
	return false
}

// roomWithoutPromises counts the nodes that have enough GPUs free, were none promised.
func (k *kind) roomWithoutPromises(r Request) int {
	enough := 0
	for _, sets := range k.plain {
		for _, set := range sets[r.shape().PerNode:] {
			enough += set.count
		}
	}
	for at := k.promised.next(0); at >= 0; at = k.promised.next(at + 1) {
		if k.nodes[at].free() >= r.shape().PerNode {
			enough++
		}
	}
	return enough
}
