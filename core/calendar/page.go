package calendar

// fanout is the number of entries of a tree's node: large enough that the tree
// is flat (200,000 changes in five levels), small enough that a node is read in
// a few cache lines.
const fanout = 16

// page is the content of one node: its entries in order.
type page[E any] struct {
	n int
	e [fanout]E
}

func (p *page[E]) insertAt(i int, e E) {
	p.n++
	copy(p.e[i+1:p.n], p.e[i:])
	p.e[i] = e
}

func (p *page[E]) removeAt(i int) {
	copy(p.e[i:], p.e[i+1:p.n])
	p.n--
}

// moveTail appends the entries from i on to another page.
func (p *page[E]) moveTail(to *page[E], i int) {
	copy(to.e[to.n:], p.e[i:p.n])
	to.n, p.n = to.n+p.n-i, i
}

// shareEvenly shares the entries of two neighbours evenly.
func (p *page[E]) shareEvenly(right *page[E]) {
	var all [2 * fanout]E
	n := copy(all[:], p.e[:p.n])
	n += copy(all[n:], right.e[:right.n])
	p.n = copy(p.e[:], all[:n/2])
	right.n = copy(right.e[:], all[n/2:n])
}

// pages is an arena of nodes, which are named by number and used again. A
// number stays good, a pointer only until the next one is made.
type pages[E any] struct {
	all  []page[E]
	free []int32
}

func (p *pages[E]) newPage() int32 {
	if n := len(p.free); n > 0 {
		ref := p.free[n-1]
		p.free = p.free[:n-1]
		p.all[ref].n = 0
		return ref
	}
	p.all = append(p.all, page[E]{})
	return int32(len(p.all) - 1)
}

// joinPages empties right into left when both fit in one page and reports true;
// otherwise it shares their entries evenly.
func (p *pages[E]) joinPages(left, right int32) bool {
	l, r := &p.all[left], &p.all[right]
	if l.n+r.n > fanout {
		l.shareEvenly(r)
		return false
	}
	r.moveTail(l, 0)
	p.free = append(p.free, right)
	return true
}

// placeEntry inserts an entry at i, splitting the page when it is full, and returns
// the new right sibling or -1.
func (p *pages[E]) placeEntry(ref int32, i int, e E) int32 {
	sibling := int32(-1)
	if p.all[ref].n == fanout {
		sibling = p.newPage()
		left := &p.all[ref]
		left.moveTail(&p.all[sibling], fanout/2)
		if i > left.n {
			ref, i = sibling, i-left.n
		}
	}
	p.all[ref].insertAt(i, e)
	return sibling
}
