package calendar_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/gpu"
)

func TestRepackMakesRoom(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(3, 8)
	for slot, id := range []string{"a", "b", "c"} {
		s.Force(booking(id, hours(9, 12), 4-slot, slot)) // 4, 3 and 2 GPUs
	}
	whole := gpu.Shape{Nodes: 1, PerNode: 8}
	slots, moves, ok := s.Repack([]string{"a", "b", "c", "unknown"}, whole, hours(10, 11), nil)
	require.True(t, ok)
	require.Len(t, moves, 1, "one move is enough")
	for _, m := range moves {
		require.NoError(t, s.Move(m.ID, m.To))
	}
	require.NoError(t, s.Place(booking("new", hours(10, 11), 8, slots...)))

	_, _, ok = s.Repack([]string{"a", "b", "c"}, gpu.Shape{Nodes: 2, PerNode: 8}, hours(10, 11), nil)
	require.False(t, ok, "nine GPUs do not fit on the one slot left")
	slots, moves, ok = s.Repack(nil, whole, hours(12, 13), nil)
	require.True(t, ok)
	require.Empty(t, moves, "there is a place as it is")
	require.Equal(t, []int{0}, slots)
	_, _, ok = s.Repack([]string{"a"}, gpu.Shape{Nodes: 1, PerNode: 9}, hours(12, 13), nil)
	require.False(t, ok)
}

func TestRepackMovesOnlyWhatMayMove(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(2, 8)
	s.Force(booking("warm", hours(9, 12), 1, 0))
	s.Force(booking("cold", hours(9, 12), 1, 1))
	slots, moves, ok := s.Repack([]string{"cold"}, gpu.Shape{Nodes: 1, PerNode: 8}, hours(9, 12), nil)
	require.True(t, ok)
	require.Equal(t, []int{1}, slots)
	require.Equal(t, []calendar.Move{{ID: "cold", From: []int{1}, To: []int{0}}}, moves)
	_, _, ok = s.Repack(nil, gpu.Shape{Nodes: 1, PerNode: 8}, hours(9, 12), nil)
	require.False(t, ok)
	_, _, ok = s.Repack([]string{"warm"}, gpu.Shape{Nodes: 1, PerNode: 8}, hours(9, 12), calendar.TiersOf(2, func(slot int) int { return -slot }))
	require.False(t, ok, "slot 1 is excluded, also for what moves")
}

func TestRepackBreaksNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		for range 6 { // crowd a few slots, so that there is something to move
			m.book(t)
		}
		tiers, ranks := drawTiers(t, m.n)
		var movable []string
		for _, b := range m.bookings {
			if rapid.Bool().Draw(t, "movable") {
				movable = append(movable, b.ID)
			}
		}
		iv := drawQuarters(t)
		shape := gpu.Shape{Nodes: rapid.IntRange(1, m.n).Draw(t, "nodes"), PerNode: rapid.IntRange(1, m.perSlot).Draw(t, "per node")}
		before := m.slots.Dump()
		slots, moves, ok := m.slots.Repack(movable, shape, iv, tiers)
		require.Equal(t, before, m.slots.Dump(), "the calendar is as it was")
		if m.has(shape, iv, ranks) {
			require.True(t, ok)
			require.Empty(t, moves)
		}
		if !ok {
			require.Empty(t, moves)
			return
		}
		for _, move := range moves {
			require.Contains(t, movable, move.ID)
			b, known := m.slots.Booking(move.ID)
			require.True(t, known)
			require.Equal(t, b.Slots, move.From)
			require.NoError(t, m.slots.Move(move.ID, move.To), "each is good in its turn")
		}
		require.NoError(t, m.slots.Place(booking("new", iv, shape.PerNode, slots...)))
		require.Len(t, slots, shape.Nodes)
	})
}
