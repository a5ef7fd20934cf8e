package calendar

import "time"

// crossing is a walk over the changes of a stretch of time: the level before
// the stretch first, then the highest in it.
type crossing[V levels] struct {
	lo, hi      int64
	level, peak V
}

// peak returns the highest level during [lo, hi), by dimension. It visits at
// most two nodes of each height.
func (t *tree[V]) peak(lo, hi int64) V {
	c := crossing[V]{lo: lo, hi: hi}
	if !t.isEmpty() {
		t.crossNode(t.root, t.height, never, &c)
	}
	return c.peak
}

// crossNode walks a node all of whose changes come before next.
func (t *tree[V]) crossNode(ref int32, height int, next int64, c *crossing[V]) {
	if height == 0 {
		c.crossLeaf(&t.leaves.all[ref])
		return
	}
	p := &t.inners.all[ref]
	for i := 0; i < p.n && p.e[i].first < c.hi; i++ {
		b, end := &p.e[i], next
		if i+1 < p.n {
			end = p.e[i+1].first
		}
		switch {
		case end <= c.lo+1: // the stretch begins after the child
			c.skipTo(&b.sum)
		case b.first > c.lo && end <= c.hi: // the child is inside
			c.takeWithin(&b.sum, &b.top)
		default:
			t.crossNode(b.child, height-1, end, c)
		}
	}
}

func (c *crossing[V]) crossLeaf(l *page[change[V]]) {
	for i := 0; i < l.n && l.e[i].at < c.hi; i++ {
		delta := &l.e[i].delta
		if l.e[i].at <= c.lo {
			c.skipTo(delta)
		} else {
			c.takeWithin(delta, delta)
		}
	}
}

// skipTo goes over changes that come before the stretch. Vectors are passed by
// pointer here because the compiler copies arrays through memory, which would
// take most of the time.
func (c *crossing[V]) skipTo(sum *V) {
	for d := range len(*sum) {
		level := c.level[d] + (*sum)[d]
		c.level[d], c.peak[d] = level, level
	}
}

// takeWithin goes over changes in the stretch that add up to sum and reach top.
func (c *crossing[V]) takeWithin(sum, top *V) {
	for d := range len(*sum) {
		level := c.level[d]
		c.peak[d] = max(c.peak[d], level+(*top)[d])
		c.level[d] = level + (*sum)[d]
	}
}

// nextAfter returns the first change after an instant.
func (t *tree[V]) nextAfter(at int64) (int64, bool) {
	found := int64(never)
	if t.isEmpty() {
		return 0, false
	}
	ref := t.root
	for height := t.height; height > 0; height-- {
		p := &t.inners.all[ref]
		i := seekChild(p, at)
		if i+1 < p.n {
			found = p.e[i+1].first
		}
		ref = p.e[i].child
	}
	l := &t.leaves.all[ref]
	for i := range l.n {
		if l.e[i].at > at {
			return l.e[i].at, true
		}
	}
	return found, found != never
}

// appendChanges appends the instants of all changes below a node, in order.
func (t *tree[V]) appendChanges(times []time.Time, ref int32, height int) []time.Time {
	if height == 0 {
		l := &t.leaves.all[ref]
		for i := range l.n {
			times = append(times, toTime(l.e[i].at))
		}
		return times
	}
	p := &t.inners.all[ref]
	for i := range p.n {
		times = t.appendChanges(times, p.e[i].child, height-1)
	}
	return times
}

// fitting is a walk from one instant on, for the first stretch of a length in
// which the level stays within a limit.
type fitting[V levels] struct {
	limit       V
	from, until int64
	length      time.Duration
	level       V
	start       int64
	open        bool // the level is within the limit since start
	done        bool
}

// firstFit returns the first start in [from, until] of a stretch of the length in
// which the level is at most limit. It steps over every subtree that stays within
// the limit, and walks only what does not.
func (t *tree[V]) firstFit(limit V, length time.Duration, from, until int64) (int64, bool) {
	f := fitting[V]{limit: limit, from: from, until: until, length: length, level: t.peak(from, from+1), start: from}
	f.open = isWithin(f.level, limit)
	if !t.isEmpty() {
		t.fitNode(t.root, t.height, never, &f)
	}
	return f.start, f.open && f.start <= until
}

func (t *tree[V]) fitNode(ref int32, height int, next int64, f *fitting[V]) {
	if height == 0 {
		l := &t.leaves.all[ref]
		for i := 0; i < l.n && !f.done; i++ {
			if l.e[i].at > f.from {
				f.fitStep(l.e[i].at, l.e[i].delta, l.e[i].delta)
			}
		}
		return
	}
	p := &t.inners.all[ref]
	for i := 0; i < p.n && !f.done; i++ {
		b, end := &p.e[i], next
		if i+1 < p.n {
			end = p.e[i+1].first
		}
		switch {
		case end <= f.from+1: // over before the walk begins
		case b.first > f.from && isWithin(addLevels(f.level, b.top), f.limit):
			f.fitStep(b.first, b.sum, b.top)
		default:
			t.fitNode(b.child, height-1, end, f)
		}
	}
}

// fitStep goes over changes from at on that add up to sum and reach top.
func (f *fitting[V]) fitStep(at int64, sum, top V) {
	if f.open && at >= shiftInstant(f.start, f.length) || !f.open && at > f.until {
		f.done = true
		return
	}
	fits := isWithin(addLevels(f.level, top), f.limit)
	if fits && !f.open {
		f.start = at
	}
	f.open, f.level = fits, addLevels(f.level, sum)
}
