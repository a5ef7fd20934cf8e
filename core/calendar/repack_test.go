package calendar_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

func TestRepackMakesRoom(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(3, 8)
	for slot, id := range []string{"a", "b", "c"} {
		s.Force(booking(id, hours(9, 12), 4-slot, slot)) // 4, 3 and 2 GPUs
	}
	whole := capacity.Shape{Nodes: 1, PerNode: 8}
	slots, moves, ok := s.Repack([]string{"a", "b", "c", "unknown"}, whole, hours(10, 11), nil)
	require.True(t, ok)
	require.Len(t, moves, 1, "one move is enough")
	for _, m := range moves {
		require.NoError(t, s.Move(m.ID, m.To))
	}
	require.NoError(t, s.Place(booking("new", hours(10, 11), 8, slots...)))

	_, _, ok = s.Repack([]string{"a", "b", "c"}, capacity.Shape{Nodes: 2, PerNode: 8}, hours(10, 11), nil)
	require.False(t, ok, "nine GPUs do not fit on the one slot left")
	slots, moves, ok = s.Repack(nil, whole, hours(12, 13), nil)
	require.True(t, ok)
	require.Empty(t, moves, "there is a place as it is")
	require.Equal(t, []int{0}, slots)
	_, _, ok = s.Repack([]string{"a"}, capacity.Shape{Nodes: 1, PerNode: 9}, hours(12, 13), nil)
	require.False(t, ok)
}

func TestRepackMovesOnlyWhatMayMove(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(2, 8)
	s.Force(booking("warm", hours(9, 12), 1, 0))
	s.Force(booking("cold", hours(9, 12), 1, 1))
	slots, moves, ok := s.Repack([]string{"cold"}, capacity.Shape{Nodes: 1, PerNode: 8}, hours(9, 12), nil)
	require.True(t, ok)
	require.Equal(t, []int{1}, slots)
	require.Equal(t, []calendar.Move{{ID: "cold", From: []int{1}, To: []int{0}}}, moves)
	_, _, ok = s.Repack(nil, capacity.Shape{Nodes: 1, PerNode: 8}, hours(9, 12), nil)
	require.False(t, ok)
	_, _, ok = s.Repack([]string{"warm"}, capacity.Shape{Nodes: 1, PerNode: 8}, hours(9, 12),
		calendar.TiersOf(2, func(slot int) int { return -slot }))
	require.False(t, ok, "slot 1 is excluded, also for what moves")
}

// What was cleared for the shape is not filled again, although the tiers prefer it.
func TestRepackKeepsWhatItCleared(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(4, 8)
	for slot, gpus := range []int{4, 4, 2, 4} {
		s.Force(booking(fmt.Sprint("b", slot), hours(9, 12), gpus, slot))
	}
	slots, moves, ok := s.Repack([]string{"b0", "b1"}, capacity.Shape{Nodes: 2, PerNode: 8}, hours(10, 11),
		calendar.TiersOf(4, func(slot int) int { return min(slot, 1) }))
	require.True(t, ok)
	require.Equal(t, []int{0, 1}, slots)
	for _, m := range moves {
		require.NoError(t, s.Move(m.ID, m.To))
	}
	require.True(t, s.Fits(0, 8, hours(10, 11)))
	require.True(t, s.Fits(1, 8, hours(10, 11)))
}

func TestRepackTriesWhatElseCouldMove(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(2, 8)
	s.Force(booking("short", hours(9, 12), 4, 0))
	s.Force(booking("stuck", hours(9, 15), 4, 0))
	s.Force(booking("later", hours(12, 15), 6, 1))
	slots, moves, ok := s.Repack([]string{"short", "stuck"}, capacity.Shape{Nodes: 1, PerNode: 4}, hours(11, 13), nil)
	require.True(t, ok)
	require.Equal(t, []int{0}, slots)
	require.Equal(t, []calendar.Move{{ID: "short", From: []int{0}, To: []int{1}}}, moves)
}

// drawCrowded places bookings of up to gang slots in a short time on few slots,
// so that there is something to move.
func drawCrowded(t *rapid.T, gang int) *model {
	m := &model{n: rapid.SampledFrom([]int{3, 4, 5, 66}).Draw(t, "n"), perSlot: 4}
	m.slots = calendar.NewSlots(m.n, m.perSlot)
	if m.n > 5 { // all but five are taken for good
		rest := booking("rest", quarterHours(0, 200), m.perSlot)
		for slot := 5; slot < m.n; slot++ {
			rest.Slots = append(rest.Slots, slot)
		}
		m.slots.Force(rest)
		m.bookings = append(m.bookings, rest)
	}
	m.margin = time.Duration(rapid.IntRange(0, 1).Draw(t, "margin")) * 15 * time.Minute
	m.slots.SetMargin(m.margin)
	for i := range rapid.IntRange(5, 20).Draw(t, "bookings") {
		b := booking(fmt.Sprint("b", i), crowdedWindow(t), rapid.IntRange(1, 3).Draw(t, "gpus"),
			rapid.SliceOfNDistinct(rapid.IntRange(0, min(m.n, 5)-1), 1, gang, rapid.ID).Draw(t, "on")...)
		b.Short = drawShort(t, len(b.Slots), b.GPUs)
		if m.slots.Place(b) == nil {
			m.bookings = append(m.bookings, b)
		}
	}
	return m
}

func crowdedWindow(t *rapid.T) calendar.Interval {
	from := rapid.IntRange(0, 8).Draw(t, "from")
	return quarterHours(from, from+rapid.IntRange(1, 8).Draw(t, "length"))
}

// Where moving one booking is enough, Repack finds a way.
func TestRepackFindsASingleMove(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawCrowded(t, 1)
		iv := crowdedWindow(t)
		need := rapid.IntRange(1, m.perSlot).Draw(t, "per node")
		movable := []string{}
		enough := m.hasRoomFor(capacity.Shape{Nodes: 1, PerNode: need}, iv, make([]int, m.n))
		for _, b := range m.bookings {
			if b.ID != "rest" {
				movable = append(movable, b.ID)
				enough = enough || m.makesRoom(b, need, iv)
			}
		}
		_, _, ok := m.slots.Repack(movable, capacity.Shape{Nodes: 1, PerNode: need}, iv, nil)
		require.True(t, ok || !enough)
	})
}

// makesRoom reports whether b can go elsewhere and leaves enough room.
func (m *model) makesRoom(b calendar.Booking, need int, iv calendar.Interval) bool {
	elsewhere := false
	for slot := range m.n {
		elsewhere = elsewhere || slot != b.Slots[0] && m.freeDuring(slot, b.Interval) >= b.GPUs
	}
	without := *m
	without.bookings = slices.DeleteFunc(slices.Clone(m.bookings),
		func(o calendar.Booking) bool { return o.ID == b.ID })
	return elsewhere && without.freeDuring(b.Slots[0], iv) >= need
}

func TestRepackBreaksNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawCrowded(t, 3)
		tiers, ranks := drawTiers(t, m.n)
		var movable []string
		for _, b := range m.bookings {
			if rapid.Bool().Draw(t, "movable") {
				movable = append(movable, b.ID)
			}
		}
		iv := crowdedWindow(t)
		shape := capacity.Shape{Nodes: rapid.IntRange(1, 3).Draw(t, "nodes"),
			PerNode: rapid.IntRange(1, m.perSlot).Draw(t, "per node")}
		shape.Short = drawShort(t, shape.Nodes, shape.PerNode)
		before := m.slots.Dump()
		slots, moves, ok := m.slots.Repack(movable, shape, iv, tiers)
		require.Equal(t, before, m.slots.Dump(), "the calendar is as it was")
		if m.hasRoomFor(shape, iv, ranks) {
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
		taken := booking("new", iv, shape.PerNode, slots...)
		taken.Short = shape.Short
		require.NoError(t, m.slots.Place(taken))
		require.Len(t, slots, shape.Nodes)
	})
}
