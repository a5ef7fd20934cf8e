package calendar

import "time"

// Profile is a step function of use over time. The zero value is zero
// everywhere. Add, At, Peak and Next take time logarithmic in the number of
// changes. Instants before 1678 and after 2262 count as the first and the last.
// Copies share what they hold: keep one. Not safe for concurrent use.
type Profile struct {
	tree tree[[1]int64]
}

// Add raises the level by n (n may be negative) during iv. An empty interval
// changes nothing. Add(iv, n) and Add(iv, -n) cancel out exactly.
func (p *Profile) Add(iv Interval, n int) { p.tree.addOver(iv, [1]int64{int64(n)}) }

// At returns the level at t.
func (p *Profile) At(t time.Time) int { return int(p.tree.levelAt(t)[0]) }

// Peak returns the highest level during iv; for an empty interval, 0.
func (p *Profile) Peak(iv Interval) int { return int(p.tree.peakDuring(iv)[0]) }

// Next returns the first instant after t at which the level changes.
func (p *Profile) Next(t time.Time) (time.Time, bool) { return p.tree.nextChange(t) }

// Changes returns the instants at which the level changes, in order and in UTC.
// The slice is the caller's.
func (p *Profile) Changes() []time.Time { return p.tree.allChanges() }

// FirstFit returns the first start in [from, until] of a stretch of the length
// during which n more stay within limit.
func (p *Profile) FirstFit(limit, n int, length time.Duration, from, until time.Time) (time.Time, bool) {
	return p.tree.fitFrom([1]int64{int64(limit - n)}, length, from, until)
}

// dimensions is how many things a Vector counts.
const dimensions = 5

// Vector counts several things at once; which ones is its user's to say.
type Vector [dimensions]int64

// Plus returns the sum of both, dimension by dimension.
func (v Vector) Plus(o Vector) Vector { return addLevels(v, o) }

// Minus returns v less o, dimension by dimension.
func (v Vector) Minus(o Vector) Vector { return addLevels(v, negateLevels(o)) }

// VectorProfile is a Profile of several dimensions, kept in one tree because
// they change together. The zero value is zero everywhere.
type VectorProfile struct {
	tree tree[Vector]
}

// Add raises the level by v during iv; an empty interval changes nothing. Adding
// the negative of v cancels it out exactly.
func (p *VectorProfile) Add(iv Interval, v Vector) { p.tree.addOver(iv, v) }

// At returns the level at t.
func (p *VectorProfile) At(t time.Time) Vector { return p.tree.levelAt(t) }

// Peak returns the highest level of each dimension during iv, which they need
// not reach at the same instant; for an empty interval, zero.
func (p *VectorProfile) Peak(iv Interval) Vector { return p.tree.peakDuring(iv) }

// Next returns the first instant after t at which a level changes.
func (p *VectorProfile) Next(t time.Time) (time.Time, bool) { return p.tree.nextChange(t) }

// Changes returns the instants at which a level changes, in order and in UTC.
// The slice is the caller's.
func (p *VectorProfile) Changes() []time.Time { return p.tree.allChanges() }

// FirstFit returns the first start in [from, until] of a stretch of the length
// during which v more stays within limit in every dimension.
func (p *VectorProfile) FirstFit(limit, v Vector, length time.Duration, from, until time.Time) (time.Time, bool) {
	return p.tree.fitFrom(limit.Minus(v), length, from, until)
}

func (t *tree[V]) addOver(iv Interval, v V) {
	var none V
	lo, hi := toInstant(iv.Start), toInstant(iv.End)
	if v == none || lo >= hi {
		return
	}
	t.changeFrom(lo, v)
	t.changeFrom(hi, negateLevels(v))
}

func (t *tree[V]) levelAt(at time.Time) V {
	ns := toInstant(at)
	return t.peak(ns, ns+1)
}

func (t *tree[V]) peakDuring(iv Interval) V {
	lo, hi := toInstant(iv.Start), toInstant(iv.End)
	if lo >= hi {
		var none V
		return none
	}
	return t.peak(lo, hi)
}

func (t *tree[V]) nextChange(at time.Time) (time.Time, bool) {
	ns, ok := t.nextAfter(toInstant(at))
	if !ok {
		return time.Time{}, false
	}
	return toTime(ns), true
}

func (t *tree[V]) allChanges() []time.Time {
	if t.isEmpty() {
		return []time.Time{}
	}
	return t.appendChanges([]time.Time{}, t.root, t.height)
}

func (t *tree[V]) fitFrom(limit V, length time.Duration, from, until time.Time) (time.Time, bool) {
	start, ok := t.firstFit(limit, max(length, 0), toInstant(from), toInstant(until))
	if !ok {
		return time.Time{}, false
	}
	return timeLike(from, start), true
}
