package priority

import (
	"slices"

	"github.com/forewarm/forewarm/core/calendar"
)

// Queue tells who waits behind whom. Those who wait join it in the order in which
// they are served; whoever wants a time that somebody before wants too waits behind
// the first of them, and is not served before: what becomes free would trickle away
// to the small and late, and the large would starve. The zero Queue is empty.
type Queue struct {
	spans []span // disjoint, in order
}

// span is an interval and the first who asked for a part of it.
type span struct {
	calendar.Interval
	first string
}

// Join adds somebody's window and returns whom it waits behind: the first in a run of
// overlapping windows that it overlaps; empty for nobody.
func (q *Queue) Join(id string, window calendar.Interval) (behind string) {
	from, _ := slices.BinarySearchFunc(q.spans, window, func(s span, window calendar.Interval) int {
		if s.End.After(window.Start) {
			return 1
		}
		return -1
	})
	to := from
	whole := span{window, id}
	for ; to < len(q.spans) && q.spans[to].Overlaps(window); to++ {
		s := q.spans[to]
		if behind == "" {
			behind, whole.first = s.first, s.first
		}
		if s.Start.Before(whole.Start) {
			whole.Start = s.Start
		}
		if s.End.After(whole.End) {
			whole.End = s.End
		}
	}
	q.spans = slices.Replace(q.spans, from, to, whole)
	return behind
}
