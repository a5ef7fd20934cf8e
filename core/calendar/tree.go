package calendar

// levels is what a tree adds up: one number, or several dimensions at once.
type levels interface {
	~[1]int64 | ~[dimensions]int64
}

// change is one change of the level.
type change[V levels] struct {
	at    int64
	delta V
}

// branch sums up a child: the time of its first change, the sum of its changes
// and the highest level that they reach, counted from the level before them.
type branch[V levels] struct {
	first    int64
	sum, top V
	child    int32
}

// tree is a step function kept as a B+ tree of its changes (Bayer and McCreight,
// Organization and maintenance of large ordered indexes, 1972), whose inner nodes
// know the sum and the highest prefix sum of each child. Leaves have height 0;
// every node but the root is at least half full. The zero value is zero
// everywhere.
type tree[V levels] struct {
	leaves pages[change[V]]
	inners pages[branch[V]]
	root   int32
	height int // of the root
}

func addLevels[V levels](a, b V) V {
	for d := range len(a) {
		a[d] += b[d]
	}
	return a
}

func maxLevels[V levels](a, b V) V {
	for d := range len(a) {
		a[d] = max(a[d], b[d])
	}
	return a
}

func negateLevels[V levels](a V) V {
	for d := range len(a) {
		a[d] = -a[d]
	}
	return a
}

// isWithin reports whether a is at most limit in each dimension.
func isWithin[V levels](a, limit V) bool {
	for d := range len(a) {
		if a[d] > limit[d] {
			return false
		}
	}
	return true
}

func (t *tree[V]) isEmpty() bool { return len(t.leaves.all) == 0 }

// changeFrom adds delta to the level from at on.
func (t *tree[V]) changeFrom(at int64, delta V) {
	if t.isEmpty() {
		t.root = t.leaves.newPage()
	}
	if sibling := t.insertChange(t.root, t.height, at, delta); sibling >= 0 {
		root := t.inners.newPage()
		p := &t.inners.all[root]
		p.n, p.e[0], p.e[1] = 2, t.sumUp(t.root, t.height), t.sumUp(sibling, t.height)
		t.root, t.height = root, t.height+1
	}
	if t.height > 0 && t.inners.all[t.root].n == 1 {
		t.inners.free = append(t.inners.free, t.root)
		t.root, t.height = t.inners.all[t.root].e[0].child, t.height-1
	}
}

// insertChange adds a change below a node and returns the node's new right sibling, or
// -1 when it was not split.
func (t *tree[V]) insertChange(ref int32, height int, at int64, delta V) int32 {
	if height == 0 {
		return t.insertLeaf(ref, at, delta)
	}
	i := seekChild(&t.inners.all[ref], at)
	child := t.inners.all[ref].e[i].child
	sibling := t.insertChange(child, height-1, at, delta)
	if sibling >= 0 {
		t.inners.all[ref].e[i] = t.sumUp(child, height-1)
		return t.inners.placeEntry(ref, i+1, t.sumUp(sibling, height-1))
	}
	t.joinIfSmall(ref, i, height-1)
	return -1
}

// seekChild returns the child in which at lies.
func seekChild[V levels](p *page[branch[V]], at int64) int {
	i := p.n - 1
	for i > 0 && p.e[i].first > at {
		i--
	}
	return i
}

func (t *tree[V]) insertLeaf(ref int32, at int64, delta V) int32 {
	l := &t.leaves.all[ref]
	i := 0
	for i < l.n && l.e[i].at < at {
		i++
	}
	if i == l.n || l.e[i].at != at {
		return t.leaves.placeEntry(ref, i, change[V]{at, delta})
	}
	// What is left of a change may be none: then it is none, so that equal
	// functions have equal changes.
	var none V
	if l.e[i].delta = addLevels(l.e[i].delta, delta); l.e[i].delta == none {
		l.removeAt(i)
	}
	return -1
}

// joinIfSmall sums up child i, of the height, after a change; when it is less than
// half full, it is joined with a neighbour.
func (t *tree[V]) joinIfSmall(ref int32, i, height int) {
	p := &t.inners.all[ref]
	if t.countPages(p.e[i].child, height) >= fanout/2 {
		p.e[i] = t.sumUp(p.e[i].child, height)
		return
	}
	i = min(i, p.n-2)
	left, right := p.e[i].child, p.e[i+1].child
	joined := false
	if height == 0 {
		joined = t.leaves.joinPages(left, right)
	} else {
		joined = t.inners.joinPages(left, right)
	}
	p.e[i] = t.sumUp(left, height)
	if joined {
		p.removeAt(i + 1)
	} else {
		p.e[i+1] = t.sumUp(right, height)
	}
}

func (t *tree[V]) countPages(ref int32, height int) int {
	if height == 0 {
		return t.leaves.all[ref].n
	}
	return t.inners.all[ref].n
}

// sumUp returns the branch for a node, which must not be empty.
func (t *tree[V]) sumUp(ref int32, height int) branch[V] {
	if height > 0 {
		return sumInner(ref, &t.inners.all[ref])
	}
	l := &t.leaves.all[ref]
	b := branch[V]{first: l.e[0].at, sum: l.e[0].delta, top: l.e[0].delta, child: ref}
	for i := 1; i < l.n; i++ {
		b.sum = addLevels(b.sum, l.e[i].delta)
		b.top = maxLevels(b.top, b.sum)
	}
	return b
}

func sumInner[V levels](ref int32, p *page[branch[V]]) branch[V] {
	b := p.e[0]
	b.child = ref
	for i := 1; i < p.n; i++ {
		b.top = maxLevels(b.top, addLevels(b.sum, p.e[i].top))
		b.sum = addLevels(b.sum, p.e[i].sum)
	}
	return b
}
