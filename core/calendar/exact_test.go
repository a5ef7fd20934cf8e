package calendar_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// The last node of a shape has a place of its own, as the full ones have: neither
// the start nor the end of a window is right without it.
func TestTheSmallestNodeNeedsAPlaceToo(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{2, 70} {
		s := calendar.NewSlots(slots, 8)
		var others []int
		for slot := 2; slot < slots; slot++ {
			others = append(others, slot)
		}
		if len(others) > 0 {
			s.Force(booking("others", hours(-9, 99), 8, others...))
		}
		s.Force(booking("whole", hours(0, 5), 6, 1))
		s.Force(booking("after", hours(12, 20), 6, 1))
		shape := capacity.Shape{Nodes: 2, PerNode: 8, Short: 5}
		start, on, ok := s.Earliest(shape, 2*time.Hour, at(1), at(30))
		require.True(t, ok)
		require.Equal(t, at(5), start, "one slot is free all the time, and the other has 2 of 3 until then")
		require.Equal(t, []int{0, 1}, on)
		r := calendar.TimeRange{StartNotEarlierThan: at(1), EndNotLaterThan: at(30), MinDuration: 2 * time.Hour}
		iv, on, ok := s.FindRange(shape, r, nil)
		require.True(t, ok)
		require.Equal(t, hours(5, 12), iv)
		require.Len(t, on, 2)
		shape.Short = 6
		start, _, ok = s.Earliest(shape, 2*time.Hour, at(1), at(30))
		require.True(t, ok)
		require.Equal(t, at(1), start, "2 are enough for a smaller one")
	}
}

func TestEarliestLeavesTimeToClean(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 70} {
		s := calendar.NewSlots(slots, 8)
		for slot := 1; slot < slots; slot++ {
			s.Force(booking("other"+time.Duration(slot).String(), hours(-9, 99), 8, slot))
		}
		s.SetMargin(time.Hour)
		require.Equal(t, time.Hour, s.Margin())
		s.Force(booking("a", hours(2, 4), 1, 0))
		s.Force(booking("b", hours(9, 10), 1, 0))
		whole := capacity.Shape{Nodes: 1, PerNode: 8}
		for hour, tc := range map[int]struct{ length, want int }{
			0: {1, 0}, 1: {3, 5}, 3: {3, 5}, 4: {4, 11}, 5: {3, 5}, 6: {3, 11}, 7: {1, 7}, 8: {1, 11},
		} {
			start, _, ok := s.Earliest(whole, time.Duration(tc.length)*time.Hour, at(hour), at(40))
			require.True(t, ok)
			require.Equal(t, at(tc.want), start, "%d hours from %d", tc.length, hour)
		}
	}
}

func TestTheFirstAndTheLastStartCount(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(1, 8)
	s.Force(booking("a", hours(0, 5), 8, 0))
	one := capacity.Shape{Nodes: 1, PerNode: 1}
	for until, want := range map[time.Time]bool{at(5): true, at(5).Add(-1): false, at(6): true} {
		_, _, ok := s.Earliest(one, time.Hour, at(1), until)
		require.Equal(t, want, ok, until)
	}
	start, _, ok := s.Earliest(one, time.Hour, at(7), at(7))
	require.True(t, ok)
	require.Equal(t, at(7), start)
	_, _, ok = s.Earliest(one, time.Hour, at(7), at(7).Add(-1))
	require.False(t, ok)
}

func TestSlotSets(t *testing.T) {
	t.Parallel()
	var s calendar.SlotSet
	for _, slot := range []int{-1, 0, 63, 64, 130} {
		s.Add(slot)
	}
	require.Equal(t, []int{0, 63, 64, 130}, slices.Collect(s.All()))
	require.Equal(t, 4, s.Len())
	for _, slot := range []int{-1, 0, 1, 62, 63, 64, 65, 129, 130, 191, 192} {
		require.Equal(t, slices.Contains([]int{0, 63, 64, 130}, slot), s.Has(slot), slot)
	}
	clone := s.Clone()
	for _, slot := range []int{-1, 0, 64, 192} {
		s.Remove(slot)
	}
	require.Equal(t, []int{63, 130}, slices.Collect(s.All()))
	for slot := range s.All() {
		require.Equal(t, 63, slot)
		break
	}
	s.Clear()
	require.Zero(t, s.Len())
	require.Equal(t, 4, clone.Len(), "a clone shares nothing")
}

func TestFitsAllLooksAtEverySlot(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(3, 8)
	require.Equal(t, 3, s.Size())
	require.NoError(t, s.Place(booking("a", hours(0, 5), 5, 2)))
	b := booking("b", hours(4, 6), 4, 0, 1)
	require.True(t, s.FitsAll(b))
	b.Slots = []int{0, 2}
	require.False(t, s.FitsAll(b))
	b.Short = 1
	require.True(t, s.FitsAll(b), "the last takes 3")
	b.Slots = []int{2, 0}
	require.False(t, s.FitsAll(b))
	b.Interval = hours(5, 6)
	require.True(t, s.FitsAll(b))
	b.Slots = []int{0, 3}
	require.False(t, s.FitsAll(b), "there is no such slot")
	require.Error(t, s.Move("nobody", []int{0}))
	s.Remove("nobody")
}

func TestChangesAreWhereTheLevelChanges(t *testing.T) {
	t.Parallel()
	var v calendar.VectorProfile
	require.Empty(t, v.Changes())
	v.Add(hours(1, 4), calendar.Vector{1})
	v.Add(hours(2, 4), calendar.Vector{0, 1})
	v.Add(hours(4, 6), calendar.Vector{1, 1})
	require.Equal(t, []time.Time{at(1), at(2), at(6)}, v.Changes())
	require.Equal(t, calendar.Vector{3, 1}, calendar.Vector{1, 2}.Plus(calendar.Vector{2, -1}))
	require.Equal(t, calendar.Vector{-1, 3}, calendar.Vector{1, 2}.Minus(calendar.Vector{2, -1}))
}

// Years that nanoseconds cannot count are held at the first and the last that
// they can.
func TestTimesBeyondAllCounting(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(1, 8)
	one := capacity.Shape{Nodes: 1, PerNode: 8}
	s.Force(booking("ages", calendar.Interval{Start: time.Time{}, End: monday}, 8, 0))
	start, _, ok := s.Earliest(one, time.Hour, monday.AddDate(-300, 0, 0), monday.AddDate(1, 0, 0))
	require.True(t, ok)
	require.True(t, start.Equal(monday), start)
	centuries := calendar.Interval{Start: monday.AddDate(-900, 0, 0), End: monday.AddDate(-100, 0, 0)}
	require.False(t, s.Fits(0, 1, centuries))
	future := calendar.Interval{Start: monday.AddDate(1, 0, 0), End: monday.AddDate(9000, 0, 0)}
	s.Force(booking("future", future, 8, 0))
	_, _, ok = s.Earliest(one, time.Hour, monday.AddDate(2, 0, 0), monday.AddDate(8000, 0, 0))
	require.False(t, ok)
}

func TestARangeErrorNamesFieldAndRule(t *testing.T) {
	t.Parallel()
	err := calendar.TimeRange{StartNotEarlierThan: at(1), MinDuration: -1}.Check()
	require.EqualError(t, err, "min_duration must not be negative")
}
