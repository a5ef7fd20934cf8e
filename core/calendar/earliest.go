package calendar

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/capacity"
)

// Earliest returns the first start in [from, until] at which the shape is free
// for length, with its slots.
func (s *Slots) Earliest(shape capacity.Shape, length time.Duration, from, until time.Time) (time.Time, []int, bool) {
	if length <= 0 {
		return time.Time{}, nil, false
	}
	w := wish{shape: shape, length: length, from: toInstant(from), until: toInstant(until), end: firstInstant}
	ns, ok := firstStart(s, w)
	if !ok {
		return time.Time{}, nil, false
	}
	start := timeLike(from, ns)
	slots, ok := s.FindInto(nil, shape, Interval{start, start.Add(length)}, nil)
	return start, slots, ok
}

// wish is a search for a start in [from, until]: from then on the shape must be
// free for the length, and until the end if that is later.
type wish struct {
	shape       capacity.Shape
	length      time.Duration
	from, until int64
	end         int64 // firstInstant is none
	tiers       Tiers
	needs       []need
}

// edge is an instant at which the number of slots that forbid a start changes.
type edge struct {
	at    int64
	delta int
	need  int // of the wish's needs, by its number
}

// need is that so many slots have so many GPUs free. A shape whose nodes are alike
// has one; otherwise it has a place where its full nodes do, and as many slots as
// it has nodes have room for the smallest: a full node's slot has that too.
type need struct {
	slots, gpus int
}

// needsOf returns what a start must give, the fewest GPUs first.
func needsOf(shape capacity.Shape) []need {
	full := need{shape.Full(), shape.PerNode}
	if shape.Short == 0 {
		return []need{full}
	}
	return []need{{shape.Nodes, shape.Least()}, full}
}

// firstStart sweeps over the starts from the first on. On each slot, each stretch
// that is too full for the shape forbids the starts from length before it to its
// end; the answer is the first instant at which few enough slots forbid it. The
// sweep takes a part of the starts at a time, so that it costs the changes up to
// the answer and not all that there are.
func firstStart(s *Slots, w wish) (int64, bool) {
	if !w.shape.Valid() || w.shape.PerNode > s.perSlot || w.from > w.until {
		return 0, false
	}
	allowed := w.tiers.allowedBelow(len(s.lines))
	if allowed.Len() < w.shape.Nodes {
		return 0, false
	}
	w.needs = needsOf(w.shape)
	spare := make([]int, len(w.needs))
	for i, n := range w.needs {
		spare[i] = allowed.Len() - n.slots
	}
	var edges []edge
	lo, part := w.from, hour
	for {
		hi := min(partEnd(s, w, lo, part), w.until)
		if mayStartIn(s, w, allowed, lo, hi) {
			edges = edges[:0]
			for slot := range allowed.All() {
				for i := range w.needs {
					edges = forbiddenStarts(s, edges, slot, w, i, lo, hi)
				}
			}
			if start, ok := firstAllowed(edges, lo, hi, spare); ok {
				return start, true
			}
		}
		if hi >= w.until {
			return 0, false
		}
		lo, part = hi+1, min(2*part, hour<<12)
	}
}

// isIndexed reports whether the index tells more of a wish's starts than looking at
// each slot: starts of one hour share the next hour if the length is two.
func isIndexed(s *Slots, w wish) bool {
	return len(s.lines) > scanned && w.length >= 2*time.Duration(hour)
}

// partEnd returns the last of the starts from lo on that are swept at once.
func partEnd(s *Slots, w wish, lo, part int64) int64 {
	if isIndexed(s, w) {
		h, _ := hourOf(shiftInstant(lo, max(w.length/2, time.Duration(hour))))
		return max(hourStart(h), lo)
	}
	return shiftInstant(lo, time.Duration(part))
}

// mayStartIn reports whether there may be a start in [lo, hi]: all of them need what
// lies between the last start and the first end.
func mayStartIn(s *Slots, w wish, allowed SlotSet, lo, hi int64) bool {
	end := shiftInstant(shiftInstant(lo, w.length), s.margin)
	if !isIndexed(s, w) || hi >= end {
		return true
	}
	s.beginSearch(hi, end, w.needs[0].gpus)
	for _, n := range w.needs {
		_, maybe := s.slotsWithRoom(n.gpus)
		have := 0
		for i, word := range maybe {
			have += bits.OnesCount64(word & allowed.words[i])
		}
		if have < n.slots {
			return false
		}
	}
	return true
}

// forbiddenStarts appends the edges of the starts in [lo, hi] that a slot forbids by one
// of the wish's needs.
func forbiddenStarts(s *Slots, edges []edge, slot int, w wish, need int, lo, hi int64) []edge {
	l, limit := &s.lines[slot], s.perSlot-w.needs[need].gpus
	last := max(shiftInstant(shiftInstant(hi, w.length), s.margin), shiftInstant(w.end, s.margin))
	done := lo // starts before it are judged
	for i := max(l.firstAfter(lo)-1, 0); i+1 < len(l.steps) && l.steps[i].at < last && done <= hi; i++ {
		if l.steps[i].level <= limit {
			continue
		}
		busy := shiftInstant(l.steps[i].at, -s.margin)
		first, end := shiftInstant(busy, -w.length)+1, l.steps[i+1].at
		if w.end > busy {
			first = lo
		}
		if first = max(first, done); first <= hi && end > first {
			edges = append(edges, edge{first, 1, need}, edge{end, -1, need})
			done = end
		}
	}
	return edges
}

// firstAllowed returns the first instant in [lo, hi] at which no more slots forbid a start
// than each need can spare.
func firstAllowed(edges []edge, lo, hi int64, spare []int) (int64, bool) {
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta))
	})
	left, start := slices.Clone(spare), lo
	for i := 0; ; {
		for ; i < len(edges) && edges[i].at <= start; i++ {
			left[edges[i].need] -= edges[i].delta
		}
		if slices.Min(left) >= 0 {
			return start, start <= hi
		}
		if i == len(edges) || edges[i].at > hi {
			return 0, false
		}
		start = edges[i].at
	}
}
