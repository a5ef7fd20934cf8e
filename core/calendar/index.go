package calendar

import "slices"

// The index is a radix tree over time: its leaves are hours, each node above
// spans 16 of the nodes below it, and the root all countable time. Hours,
// because leases are asked for in hours and most edges lie on them, and because
// a month of a pool of 1,250 slots with 8 GPUs then takes 1 MB, which stays in a
// cache; quarters of an hour would take four times that and save few exact checks.
const (
	hour     = int64(3_600_000_000_000)
	radixLog = 4
	radix    = 1 << radixLog
	rootSpan = 6                                   // the root's height: 16⁶ hours
	midHour  = int64(1) << (radixLog*rootSpan - 1) // of 1970, so that hours are not negative
)

// index holds for each node of the tree and each number of GPUs a set of slots:
// those on which at least so many are free during the node's whole span. A node
// has children if and only if a booking begins or ends strictly inside its span;
// in the span of a node without children nothing changes. So the tree depends on
// the bookings alone, not on the order in which they came, and a booking of a
// century costs no more than one of a day.
type index struct {
	slots, perSlot, words int
	nodes                 []span   // in blocks of radix; the root is the first block's first
	rooms                 []uint64 // node by node, perSlot sets of words each
	least                 []int16  // block by block, slot by slot: what is free on each node of the block
	free                  []int32  // blocks that can be used again, by their first node
}

type span struct {
	children int32 // the first of radix nodes, or 0
	edges    int32 // beginnings and ends of bookings strictly inside
}

// place is where a node lies in time.
type place struct {
	node   int32
	height int
	hour   int64 // its first
}

func rootPlace() place { return place{height: rootSpan} }

func (p place) startsAt() int64 { return hourStart(p.hour) }
func (p place) endsAt() int64   { return hourStart(p.hour + 1<<(radixLog*p.height)) }

// hourStart is the instant at which an hour begins, held inside countable time.
func hourStart(h int64) int64 {
	switch h -= midHour; {
	case h > lastInstant/hour:
		return never
	case h < firstInstant/hour:
		return firstInstant
	default:
		return h * hour
	}
}

// hourOf returns the hour in which an instant lies, and whether it is its start.
func hourOf(ns int64) (h int64, exact bool) {
	h = ns / hour
	rest := ns - h*hour
	if rest < 0 {
		h--
	}
	return h + midHour, rest == 0
}

// newIndex returns the index of n free slots.
func newIndex(n, perSlot int) *index {
	x := &index{slots: n, perSlot: perSlot, words: wordsFor(n)}
	x.addBlock()
	for slot := range n {
		x.setFree(0, slot, perSlot)
	}
	return x
}

// reserveBlocks makes room for so many more blocks.
func (x *index) reserveBlocks(n int) {
	x.nodes = slices.Grow(x.nodes, n*radix)
	x.rooms = slices.Grow(x.rooms, n*radix*x.perSlot*x.words)
	x.least = slices.Grow(x.least, n*radix*x.slots)
}

// addBlock makes one more block.
func (x *index) addBlock() {
	x.nodes = append(x.nodes, make([]span, radix)...)
	x.rooms = append(x.rooms, make([]uint64, radix*x.perSlot*x.words)...)
	x.least = append(x.least, make([]int16, radix*x.slots)...)
}

// leastOfSiblings returns what is free of a slot on each node of the block in which
// node lies.
func (x *index) leastOfSiblings(node int32, slot int) []int16 {
	i := (int(node)/radix*x.slots + slot) * radix
	return x.least[i : i+radix]
}

// atLeast returns the set of slots that have g GPUs free during a node's span.
func (x *index) atLeast(node int32, g int) []uint64 {
	i := (int(node)*x.perSlot + g - 1) * x.words
	return x.rooms[i : i+x.words]
}

// setsOf returns the sets of a node.
func (x *index) setsOf(node int32) []uint64 {
	size := x.perSlot * x.words
	return x.rooms[int(node)*size : (int(node)+1)*size]
}

func (x *index) setFree(node int32, slot, free int) {
	free = max(free, 0)
	known := &x.leastOfSiblings(node, slot)[node%radix]
	before := int(*known)
	if before == free {
		return
	}
	*known = int16(free)
	sets, bit := x.setsOf(node), uint64(1)<<(slot%64)
	for g := before; g < free; g++ {
		sets[g*x.words+slot/64] |= bit
	}
	for g := free; g < before; g++ {
		sets[g*x.words+slot/64] &^= bit
	}
}

// childAt returns the child of a node that has children in which hour h lies.
func (x *index) childAt(p place, h int64) place {
	height := p.height - 1
	i := (h >> (radixLog * height)) & (radix - 1)
	return place{x.nodes[p.node].children + int32(i), height, p.hour + i<<(radixLog*height)}
}

// splitNode gives a node children that are as it is.
func (x *index) splitNode(node int32) {
	first := int32(len(x.nodes))
	if n := len(x.free); n > 0 {
		first, x.free = x.free[n-1], x.free[:n-1]
	} else {
		x.addBlock()
	}
	x.nodes[node].children = first
	for child := first; child < first+radix; child++ {
		copy(x.setsOf(child), x.setsOf(node))
	}
	for slot := range x.slots {
		free, children := x.leastOfSiblings(node, slot)[node%radix], x.leastOfSiblings(first, slot)
		for i := range children {
			children[i] = free
		}
	}
}

// addEdges counts n beginnings or ends in every node that they lie inside.
func (x *index) addEdges(at int64, n int32) {
	h, exact := hourOf(at)
	for p := rootPlace(); p.height > 0 && (!exact || h != p.hour); p = x.childAt(p, h) {
		x.nodes[p.node].edges += n
		if x.nodes[p.node].children == 0 {
			x.splitNode(p.node)
		}
	}
}

// removeEdge takes an edge back. A node that has none left gives up its children.
func (x *index) removeEdge(at int64) {
	h, exact := hourOf(at)
	for p := rootPlace(); p.height > 0 && (!exact || h != p.hour); {
		node := p.node
		p = x.childAt(p, h)
		if x.nodes[node].edges--; x.nodes[node].edges == 0 {
			x.free = append(x.free, x.nodes[node].children)
			x.nodes[node].children = 0
		}
	}
}

// refreshSlot brings up to date what the nodes from p down that meet [lo, hi) know
// of a slot.
func (x *index) refreshSlot(p place, slot int, l *line, lo, hi int64) {
	children := x.nodes[p.node].children
	if children == 0 {
		x.setFree(p.node, slot, x.perSlot-l.peak(p.startsAt(), p.endsAt()))
		return
	}
	from, _ := hourOf(max(lo, p.startsAt()))
	to, _ := hourOf(min(hi, p.endsAt()) - 1)
	for h := from; h <= to; {
		c := x.childAt(p, h)
		x.refreshSlot(c, slot, l, lo, hi)
		h = c.hour + 1<<(radixLog*c.height)
	}
	x.setFree(p.node, slot, int(slices.Min(x.leastOfSiblings(children, slot))))
}

// fillSlot is refreshSlot for a slot that the nodes from p down know as free: it only
// visits those in whose span the slot is used. Its level at the start of p is given
// with the steps that come after.
func (x *index) fillSlot(p place, slot, level int, steps []step) {
	children := x.nodes[p.node].children
	if children == 0 {
		end := p.endsAt()
		for i := 0; i < len(steps) && steps[i].at < end; i++ {
			level = max(level, steps[i].level)
		}
		x.setFree(p.node, slot, x.perSlot-level)
		return
	}
	for i := range int64(radix) {
		c := place{children + int32(i), p.height - 1, p.hour + i<<(radixLog*(p.height-1))}
		start, end := c.startsAt(), c.endsAt()
		if start == end {
			continue // beyond all countable time
		}
		for len(steps) > 0 && steps[0].at <= start {
			level, steps = steps[0].level, steps[1:]
		}
		if len(steps) == 0 && level == 0 {
			break
		}
		if level > 0 || steps[0].at < end {
			x.fillSlot(c, slot, level, steps)
		}
	}
	x.setFree(p.node, slot, int(slices.Min(x.leastOfSiblings(children, slot))))
}

// coverSpan lists the nodes from p down that together make up [lo, hi): those that
// lie inside or in which nothing changes, and the hours that lie only partly
// inside.
func (x *index) coverSpan(p place, lo, hi int64, full, part []int32) (whole, partly []int32) {
	start, end := p.startsAt(), p.endsAt()
	if lo <= start && end <= hi || p.height > 0 && x.nodes[p.node].children == 0 {
		return append(full, p.node), part
	}
	if p.height == 0 {
		return full, append(part, p.node)
	}
	from, _ := hourOf(max(lo, start))
	to, _ := hourOf(min(hi, end) - 1)
	for h := from; h <= to; {
		c := x.childAt(p, h)
		full, part = x.coverSpan(c, lo, hi, full, part)
		h = c.hour + 1<<(radixLog*c.height)
	}
	return full, part
}
