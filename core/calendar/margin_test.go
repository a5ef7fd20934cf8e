package calendar_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// What is over, but not clean yet, is in the way, and moves.
func TestRepackMovesWhatIsStillCleaned(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(2, 8)
	s.SetMargin(time.Hour)
	s.Force(booking("a", hours(9, 12), 4, 0))
	s.Force(booking("b", hours(9, 12), 4, 1))
	whole := capacity.Shape{Nodes: 1, PerNode: 8}
	slots, moves, ok := s.Repack([]string{"a"}, whole, hours(12, 13), nil)
	require.True(t, ok)
	require.Equal(t, []int{0}, slots)
	require.Equal(t, []calendar.Move{{ID: "a", From: []int{0}, To: []int{1}}}, moves)
	_, moves, ok = s.Repack([]string{"a"}, whole, hours(13, 14), nil)
	require.True(t, ok)
	require.Empty(t, moves, "it is clean then")
}

// No more is moved than must be: what stays may fill a slot to its last GPU.
func TestRepackMovesTheFewest(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(2, 8)
	s.Force(booking("a", hours(9, 10), 2, 0))
	s.Force(booking("b", hours(9, 10), 2, 0))
	s.Force(booking("c", hours(11, 12), 2, 0))
	s.Force(booking("fixed", hours(9, 12), 5, 1))
	slots, moves, ok := s.Repack([]string{"a", "b", "c"}, capacity.Shape{Nodes: 1, PerNode: 6}, hours(9, 12), nil)
	require.True(t, ok)
	require.Equal(t, []int{0}, slots)
	require.Equal(t, []calendar.Move{{ID: "b", From: []int{0}, To: []int{1}}}, moves)
}

// A smaller last node is made room for, too.
func TestRepackClearsASlotForTheSmallestNode(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(3, 8)
	s.Force(booking("fixed", hours(9, 12), 6, 1))
	s.Force(booking("moves", hours(9, 12), 1, 1))
	s.Force(booking("other", hours(9, 12), 7, 2))
	slots, moves, ok := s.Repack([]string{"moves"}, capacity.Shape{Nodes: 2, PerNode: 8, Short: 6}, hours(9, 12), nil)
	require.True(t, ok)
	require.Equal(t, []int{0, 1}, slots)
	require.Equal(t, []calendar.Move{{ID: "moves", From: []int{1}, To: []int{2}}}, moves)
}

// The longest window ends early enough to clean before what comes next.
func TestARangeLeavesTimeToClean(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(1, 8)
	s.SetMargin(time.Hour)
	s.Force(booking("next", hours(12, 14), 8, 0))
	got, slots, ok := s.FindRange(capacity.Shape{Nodes: 1, PerNode: 8}, calendar.TimeRange{
		StartNotEarlierThan: at(9), MinDuration: time.Hour, MaxDuration: 9 * time.Hour}, nil)
	require.True(t, ok)
	require.Equal(t, hours(9, 11), got)
	require.Equal(t, []int{0}, slots)
}

// Where the end alone says how long, the start is before it.
func TestARangeBeginsBeforeItsEnd(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(1, 8)
	s.Force(booking("before", hours(0, 12), 8, 0))
	whole := capacity.Shape{Nodes: 1, PerNode: 8}
	_, _, ok := s.FindRange(whole, calendar.TimeRange{StartNotEarlierThan: at(9), EndNotEarlierThan: at(12)}, nil)
	require.False(t, ok)
	got, _, ok := s.FindRange(whole, calendar.TimeRange{StartNotEarlierThan: at(9), EndNotEarlierThan: at(13)}, nil)
	require.True(t, ok)
	require.Equal(t, hours(12, 13), got)
}
