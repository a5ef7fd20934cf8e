package placement

import "slices"

// Shared GPUs are kept in buckets of a twentieth of a load each.
const (
	bucketWidth = 50
	loadBuckets = whole/bucketWidth + 1
)

func (l *load) add(p Part, jobs int) {
	l.MemoryMiB += jobs * p.MemoryMiB
	l.Compute += jobs * p.Compute
	l.jobs += jobs
}

// loadOf is how loaded a GPU of the kind is, in thousandths: what part of its memory and
// of its time is in use, memory counting for more.
func (p Policy) loadOf(k *kind, x Part) int {
	memory := whole
	if k.MemoryMiB > 0 {
		memory = x.MemoryMiB * whole / k.MemoryMiB
	}
	return (p.MemoryLoad*memory + (whole-p.MemoryLoad)*x.Compute) / whole
}

// refreshDevices brings the index of shared GPUs up to date with a node.
func (c *Cluster) refreshDevices(n *node) {
	for d, l := range n.loads {
		bucket := min(c.policy.loadOf(n.kind, l.Part)/bucketWidth, loadBuckets-1)
		at := n.at*n.GPUs + d
		for b, set := range n.kind.open {
			if b == bucket && l.jobs > 0 && n.listed.usable {
				set.add(at)
			} else {
				set.remove(at)
			}
		}
	}
}

// findShared returns the fullest shared GPU that the part fits on with no promise delayed.
func (s search) findShared(p Part) (Spot, bool) {
	c, k := s.c, s.k
	highest := c.policy.LoadLimit - c.policy.loadOf(k, p)
	for b := min(highest/bucketWidth+1, loadBuckets-1); b >= 0 && highest >= 0; b-- {
		for at := k.open[b].next(0); at >= 0; at = k.open[b].next(at + 1) {
			n, d := k.nodes[at/k.GPUs], at%k.GPUs
			if c.takes(n, d, p) && !s.keepsOff(n) && n.sharesInTime(1<<d, s.now, s.until) {
				return Spot{Node: n.ID, GPUs: 1, Devices: 1 << d}, true
			}
		}
	}
	return Spot{}, false
}

// takes reports whether a shared GPU has room for another part.
func (c *Cluster) takes(n *node, device int, p Part) bool {
	sum := n.loads[device].Part
	sum.MemoryMiB += p.MemoryMiB
	sum.Compute += p.Compute
	return sum.MemoryMiB <= n.MemoryMiB && sum.Compute <= whole && c.policy.loadOf(n.kind, sum) <= c.policy.LoadLimit
}

// sharesInTime reports whether the device may be shared until an instant with no promise delayed: it
// is promised to no other part, and where a promise begins after the others have left it, another
// GPU is left.
func (n *node) sharesInTime(device uint64, now, until instant) bool {
	return !slices.ContainsFunc(n.promises, func(p promise) bool {
		from := max(p.from, now)
		delayed := from < min(p.until, until) && n.busyAt(from, now)&device == 0 && n.freeAt(from, now) < 1
		return p.device == device || delayed
	})
}
