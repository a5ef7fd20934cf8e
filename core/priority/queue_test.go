package priority_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/priority"
)

func between(from, to int) calendar.Interval {
	return calendar.Interval{Start: hours(from), End: hours(to)}
}

func TestWhoWaitsBehindWhom(t *testing.T) {
	t.Parallel()
	var q priority.Queue
	for _, x := range []struct {
		id       string
		from, to int
		behind   string
		why      string
	}{
		{"a", 4, 6, "", "nobody is before"},
		{"b", 8, 10, "", "another time"},
		{"c", 6, 8, "", "windows are half open: it touches both and overlaps neither"},
		{"d", 5, 7, "a", "overlaps a and c: the earlier window decides"},
		{"e", 7, 8, "a", "overlaps c, which d has joined to a"},
		{"f", 9, 12, "b", "overlaps b alone"},
		{"g", 11, 13, "b", "overlaps f, which waits behind b"},
		{"h", 0, 4, "", "before all of them"},
		{"i", 0, 20, "h", "overlaps everybody"},
		{"j", 15, 16, "h", "overlaps i alone"},
		{"k", 20, 21, "", "after all of them"},
	} {
		require.Equal(t, x.behind, q.Join(x.id, between(x.from, x.to)), "%s: %s", x.id, x.why)
	}
}

// Against the rule said plainly: a run is what overlapping windows make together,
// and whoever joins waits behind the one who was first in the earliest run that
// the window overlaps.
func TestWaitingBehindIsByRunsOfOverlappingWindows(t *testing.T) {
	t.Parallel()
	type run struct {
		window calendar.Interval
		first  string
	}
	rapid.Check(t, func(t *rapid.T) {
		var q priority.Queue
		var runs []run
		for i := range rapid.IntRange(1, 20).Draw(t, "waiting") {
			from := rapid.IntRange(0, 30).Draw(t, "from")
			id, window := fmt.Sprint(i), between(from, from+rapid.IntRange(1, 8).Draw(t, "length"))
			joined, left := run{window, id}, []run{}
			var earliest *run
			for _, r := range runs {
				if !r.window.Overlaps(window) {
					left = append(left, r)
					continue
				}
				if earliest == nil || r.window.Start.Before(earliest.window.Start) {
					earliest = &r
				}
				if r.window.Start.Before(joined.window.Start) {
					joined.window.Start = r.window.Start
				}
				if r.window.End.After(joined.window.End) {
					joined.window.End = r.window.End
				}
			}
			want := ""
			if earliest != nil {
				want, joined.first = earliest.first, earliest.first
			}
			require.Equal(t, want, q.Join(id, window))
			runs = append(left, joined)
		}
	})
}
