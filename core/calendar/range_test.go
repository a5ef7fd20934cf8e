package calendar_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

func TestARangeNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := calendar.TimeRange{StartNotEarlierThan: at(9), MinDuration: time.Hour}
	require.NoError(t, good.Check())
	for _, tc := range []struct {
		name, field string
		change      func(r *calendar.TimeRange)
	}{
		{"no start", "start_time_not_earlier_than",
			func(r *calendar.TimeRange) { r.StartNotEarlierThan = time.Time{} }},
		{"no length", "min_duration", func(r *calendar.TimeRange) { r.MinDuration = 0 }},
		{"a negative length", "min_duration", func(r *calendar.TimeRange) { r.MinDuration = -1 }},
		{"a negative limit", "max_duration", func(r *calendar.TimeRange) { r.MaxDuration = -1 }},
		{"a limit below the least", "max_duration", func(r *calendar.TimeRange) { r.MaxDuration = time.Minute }},
		{"starts crossed", "start_time_not_later_than", func(r *calendar.TimeRange) { r.StartNotLaterThan = at(8) }},
		{"ends crossed", "end_time_not_later_than", func(r *calendar.TimeRange) {
			r.EndNotEarlierThan,
				r.EndNotLaterThan = at(12), at(11)
		}},
		{"no time left", "end_time_not_later_than",
			func(r *calendar.TimeRange) { r.EndNotLaterThan = at(9).Add(time.Minute) }},
		{"an end out of reach", "end_time_not_earlier_than", func(r *calendar.TimeRange) {
			r.StartNotLaterThan, r.MaxDuration, r.EndNotEarlierThan = at(10), time.Hour, at(12)
		}},
		{"an end in the past and no length", "min_duration",
			func(r *calendar.TimeRange) { r.MinDuration, r.EndNotEarlierThan = 0, at(9) }},
	} {
		r := good
		tc.change(&r)
		var wrong *calendar.RangeError
		require.ErrorAs(t, r.Check(), &wrong, tc.name)
		require.Equal(t, tc.field, wrong.Field, tc.name)
		_, _, ok := calendar.NewSlots(2, 8).FindRange(capacity.Shape{Nodes: 1, PerNode: 1}, r, nil)
		require.False(t, ok, tc.name)
	}
}

// drawRange draws a range on the grid of quarters; parts are left open.
func drawRange(t *rapid.T) calendar.TimeRange {
	base := rapid.IntRange(0, 100).Draw(t, "base")
	some := func(label string, from, to int) (time.Time, bool) {
		if rapid.Bool().Draw(t, label+" open") {
			return time.Time{}, false
		}
		return quarterHour(base + rapid.IntRange(from, to).Draw(t, label)), true
	}
	r := calendar.TimeRange{StartNotEarlierThan: quarterHour(base)}
	r.StartNotLaterThan, _ = some("start until", 0, 30)
	r.EndNotEarlierThan, _ = some("end from", 0, 20)
	r.EndNotLaterThan, _ = some("end until", 5, 50)
	r.MinDuration = time.Duration(rapid.IntRange(0, 10).Draw(t, "min")) * 15 * time.Minute
	r.MaxDuration = time.Duration(rapid.IntRange(0, 20).Draw(t, "max")) * 15 * time.Minute
	return r
}

// isInside reports whether a window of quarters keeps to the range.
func isInside(r calendar.TimeRange, iv calendar.Interval) bool {
	before := func(a, b time.Time) bool { return b.IsZero() || !a.After(b) }
	length := iv.Length()
	if r.MaxDuration == 0 && r.EndNotLaterThan.IsZero() && !iv.End.Equal(r.EndNotEarlierThan) &&
		length > r.MinDuration {
		return false // the least length, when nothing bounds it
	}
	return !iv.Start.Before(r.StartNotEarlierThan) && before(iv.Start, r.StartNotLaterThan) &&
		!iv.End.Before(r.EndNotEarlierThan) &&
		before(iv.End, r.EndNotLaterThan) && length > 0 && length >= r.MinDuration &&
		(r.MaxDuration == 0 || length <= r.MaxDuration)
}

func TestFindRangeAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		tiers, ranks := drawTiers(t, m.n)
		r := drawRange(t)
		if r.Check() != nil {
			return
		}
		shape := capacity.Shape{Nodes: rapid.SampledFrom([]int{1, 2, m.n}).Draw(t, "nodes"),
			PerNode: rapid.IntRange(1, m.perSlot).Draw(t, "per node")}
		shape.Short = drawShort(t, shape.Nodes, shape.PerNode)
		got, slots, ok := m.slots.FindRange(shape, r, tiers)
		if ok {
			require.True(t, isInside(r, got), "%v is not in %+v", got, r)
			require.Len(t, slots, shape.Nodes)
			m.checkFound(t, slots, shape, got, ranks)
		}
		want, found := m.firstInRange(r, shape, ranks, got)
		require.Equal(t, found, ok)
		require.Equal(t, want, got)
	})
}

// firstInRange tries every start and length of the grid, the longest first. Most
// windows are told apart by a few slots, so that counting stops early.
func (m *model) firstInRange(r calendar.TimeRange, shape capacity.Shape, ranks []int,
	hint calendar.Interval) (calendar.Interval, bool) {
	last := 60
	if !hint.Start.IsZero() { // a later start cannot be right; an earlier one would be wrong
		last = int(hint.Start.Sub(r.StartNotEarlierThan) / (15 * time.Minute))
	}
	for start := range last + 1 {
		for length := 60; length > 0; length-- {
			from := r.StartNotEarlierThan.Add(time.Duration(start) * 15 * time.Minute)
			iv := calendar.Interval{Start: from, End: from.Add(time.Duration(length) * 15 * time.Minute)}
			if isInside(r, iv) && m.hasRoomFor(shape, iv, ranks) {
				return iv, true
			}
		}
	}
	return calendar.Interval{}, false
}

func (m *model) hasRoomFor(shape capacity.Shape, iv calendar.Interval, ranks []int) bool {
	rooms := make([]int, m.perSlot+1)
	for slot := range m.n {
		for g := 1; ranks[slot] >= 0 && g <= m.freeDuring(slot, iv); g++ {
			rooms[g]++
		}
	}
	return holdsShape(rooms, shape)
}

func TestFreeBusyEqualsARecount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		from := rapid.IntRange(0, 120).Draw(t, "from")
		to := from + rapid.IntRange(0, 60).Draw(t, "length")
		step := time.Duration(rapid.IntRange(0, 5).Draw(t, "step")) * 15 * time.Minute
		levels := m.slots.FreeBusy(quarterHour(from), quarterHour(to), step)
		at := quarterHour(from)
		for i, l := range levels {
			require.Equal(t, at, l.Start)
			if at = l.End; step > 0 && i < len(levels)-1 {
				require.Equal(t, step, l.End.Sub(l.Start))
			}
			m.checkLevel(t, l)
			if step == 0 && i > 0 {
				m.checkChange(t, l.Start)
			}
		}
		if from < to {
			require.Equal(t, quarterHour(to), at)
		}
	})
}

func (m *model) checkLevel(t *rapid.T, l calendar.Level) {
	margin := m.margin
	rooms := make([]int, m.perSlot+1)
	gpus, whole, largest := 0, 0, 0
	for slot := range m.n {
		free := m.freeDuring(slot, calendar.Interval{Start: l.Start,
			End: l.End.Add(-margin)}) // free adds the margin of a request
		gpus += free
		for g := 1; g <= free; g++ {
			rooms[g]++
		}
		if free == m.perSlot {
			whole++
		}
	}
	for g := 1; g <= m.perSlot; g++ {
		for rest := range g + 1 {
			if full := rooms[g]; rest == 0 || rest == g {
				largest = max(largest, g*full)
			} else if shape := (capacity.Shape{Nodes: full + 1, PerNode: g, Short: g - rest}); full > 0 &&
				holdsShape(rooms, shape) {
				largest = max(largest, shape.GPUs())
			}
		}
	}
	require.Equal(t, gpus, l.FreeGPUs)
	require.Equal(t, whole, l.FreeSlots)
	require.Equal(t, largest, l.Largest.GPUs())
	require.True(t, largest == 0 || l.Largest.Valid() && holdsShape(rooms, l.Largest))
}

// checkChange checks that something begins or ends at an instant.
func (m *model) checkChange(t *rapid.T, when time.Time) {
	changed := false
	for slot := range m.n {
		changed = changed || m.usedAt(slot, when) != m.usedAt(slot, when.Add(-1))
	}
	require.True(t, changed)
}

func TestFreeBusyEndsEarly(t *testing.T) {
	t.Parallel()
	levels := calendar.NewSlots(3, 8).FreeBusy(at(0), at(1000), time.Second)
	require.Len(t, levels, calendar.MaxLevels)
	require.Equal(t, at(0).Add(calendar.MaxLevels*time.Second), levels[len(levels)-1].End)
	require.Empty(t, calendar.NewSlots(3, 8).FreeBusy(at(1), at(1), 0))
	require.Equal(t,
		[]calendar.Level{{Start: at(0), End: at(9), FreeGPUs: 24, FreeSlots: 3,
			Largest: capacity.Shape{Nodes: 3, PerNode: 8}}},
		calendar.NewSlots(3, 8).FreeBusy(at(0), at(9), 0))
}
