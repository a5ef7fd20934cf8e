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

func booking(id string, iv calendar.Interval, gpus int, slots ...int) calendar.Booking {
	return calendar.Booking{ID: id, Interval: iv, Slots: slots, GPUs: gpus}
}

func TestPlaceRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		b    calendar.Booking
		want string
	}{
		"a taken id":      {booking("a", hours(20, 21), 1, 0), "already placed"},
		"no time":         {booking("b", hours(9, 9), 1, 1), "empty"},
		"no GPUs":         {booking("b", hours(9, 10), 0, 1), "empty"},
		"no slots":        {booking("b", hours(9, 10), 1), "empty"},
		"a slot twice":    {booking("b", hours(9, 10), 1, 1, 1), "slot 1 twice"},
		"a slot too far":  {booking("b", hours(9, 10), 1, 2), "slot 2"},
		"a negative slot": {booking("b", hours(9, 10), 1, -1), "slot -1"},
		"too many GPUs":   {booking("b", hours(20, 21), 9, 1), "slot 1"},
		"a full slot":     {booking("b", hours(11, 13), 3, 1, 0), "slot 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := calendar.NewSlots(2, 8)
			require.NoError(t, s.Place(booking("a", hours(9, 12), 6, 0)))
			require.ErrorContains(t, s.Place(tc.b), tc.want)
			require.Equal(t, 2+8, s.Free(hours(9, 12)), "nothing changed")
			require.Equal(t, 16, s.Free(hours(12, 48)))
		})
	}
	s := calendar.NewSlots(1, 8)
	require.NoError(t, s.Place(booking("a", hours(9, 12), 8, 0)))
	require.NoError(t, s.Place(booking("b", hours(12, 13), 8, 0)), "one starts as the other ends")
}

func TestFindChoosesTheBest(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(4, 8)
	require.NoError(t, s.Place(booking("half", hours(9, 12), 4, 2)))
	require.NoError(t, s.Place(booking("most", hours(9, 12), 6, 3)))
	for _, tc := range []struct {
		name  string
		shape capacity.Shape
		iv    calendar.Interval
		rank  calendar.Rank
		want  []int
	}{
		{"best fit", capacity.Shape{Nodes: 1, PerNode: 2}, hours(9, 10), nil, []int{3}},
		{"the next best", capacity.Shape{Nodes: 2, PerNode: 3}, hours(9, 10), nil, []int{2, 0}},
		{"lowest numbers", capacity.Shape{Nodes: 2, PerNode: 8}, hours(9, 10), nil, []int{0, 1}},
		{"too many nodes", capacity.Shape{Nodes: 3, PerNode: 8}, hours(9, 10), nil, nil},
		{"later all are free", capacity.Shape{Nodes: 4, PerNode: 8}, hours(12, 13), nil, []int{0, 1, 2, 3}},
		{"rank before fit", capacity.Shape{Nodes: 2, PerNode: 1}, hours(9, 10),
			func(s int) int { return []int{2, 1, 3, 4}[s] }, []int{1, 0}},
		{"excluded slots", capacity.Shape{Nodes: 1, PerNode: 1}, hours(9, 10), func(int) int { return -1 }, nil},
		{"larger than a node", capacity.Shape{Nodes: 1, PerNode: 9}, hours(20, 21), nil, nil},
		{"an empty shape", capacity.Shape{}, hours(9, 10), nil, nil},
		{"an empty window", capacity.Shape{Nodes: 1, PerNode: 1}, hours(9, 9), nil, nil},
	} {
		got, ok := s.Find(tc.shape, tc.iv, tc.rank)
		require.Equal(t, tc.want, got, tc.name)
		require.Equal(t, tc.want != nil, ok, tc.name)
	}
}

func TestWhatIsOnASlot(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(2, 8)
	late, early := booking("late", hours(14, 16), 8, 0, 1), booking("early", hours(9, 12), 8, 0)
	require.NoError(t, s.Place(late))
	require.NoError(t, s.Place(early))
	require.Equal(t, []calendar.Booking{early, late}, s.On(0, hours(0, 24)))
	require.Empty(t, s.On(0, hours(12, 14)))
}

// A pool that was shrunk still shows what it promised.
func TestForceShowsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(1, 8)
	s.Force(booking("a", hours(9, 12), 8, 0, 5))
	s.Force(booking("b", hours(9, 12), 8, 0))
	require.Zero(t, s.Free(hours(9, 12)))
	require.False(t, s.Fits(0, 1, hours(11, 13)))
	s.Remove("a")
	require.False(t, s.Fits(0, 1, hours(11, 13)))
	s.Remove("b")
	s.Remove("nobody")
	require.Equal(t, 8, s.Free(hours(0, 24)))
}

const perSlot = 4

// drawn is a calendar with what was accepted of random bookings.
type drawn struct {
	slots    *calendar.Slots
	n        int
	accepted []calendar.Booking
}

func drawSlots(t *rapid.T) drawn {
	d := drawn{n: rapid.IntRange(1, 5).Draw(t, "slots")}
	d.slots = calendar.NewSlots(d.n, perSlot)
	for i := range rapid.IntRange(0, 25).Draw(t, "bookings") {
		from := rapid.IntRange(0, 20).Draw(t, "from")
		b := booking(fmt.Sprint("b", i), hours(from, from+rapid.IntRange(0, 8).Draw(t, "length")),
			rapid.IntRange(0, perSlot+1).Draw(t, "gpus"),
			rapid.SliceOfN(rapid.IntRange(-1, d.n), 0, 3).Draw(t, "on")...)
		b.Short = drawShort(t, len(b.Slots), b.GPUs)
		if d.slots.Place(b) == nil {
			d.accepted = append(d.accepted, b)
		}
	}
	return d
}

// usedAt counts again, from the bookings alone.
func (d drawn) usedAt(slot int, when time.Time) int {
	sum := 0
	for _, b := range d.accepted {
		if i := slices.Index(b.Slots, slot); i >= 0 && b.Interval.Contains(when) {
			sum += onNode(b, i)
		}
	}
	return sum
}

func (d drawn) fits(slot int, gpus int, iv calendar.Interval) bool {
	for when := iv.Start; when.Before(iv.End); when = when.Add(time.Hour) {
		if d.usedAt(slot, when)+gpus > perSlot {
			return false
		}
	}
	return gpus <= perSlot
}

func (d drawn) countRoom(gpus int, iv calendar.Interval) int {
	n := 0
	for slot := range d.n {
		if d.fits(slot, gpus, iv) {
			n++
		}
	}
	return n
}

func (d drawn) hasRoomFor(shape capacity.Shape, iv calendar.Interval) bool {
	return d.countRoom(shape.PerNode, iv) >= shape.Full() && d.countRoom(shape.Least(), iv) >= shape.Nodes
}

func TestNoSlotIsOverCommitted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawSlots(t)
		for slot := range d.n {
			for hour := range 30 {
				require.LessOrEqual(t, d.usedAt(slot, at(hour)), perSlot)
				require.Equal(t, d.usedAt(slot, at(hour)) < perSlot, d.slots.Fits(slot, 1, hours(hour, hour+1)))
			}
		}
	})
}

func TestPlaceAndRemoveRestore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawSlots(t)
		for _, b := range rapid.Permutation(d.accepted).Draw(t, "order") {
			d.slots.Remove(b.ID)
		}
		require.Equal(t, calendar.NewSlots(d.n, perSlot).Dump(), d.slots.Dump(), "down to the last step")
	})
}

func drawShape(t *rapid.T) capacity.Shape {
	shape := capacity.Shape{Nodes: rapid.IntRange(1, 5).Draw(t, "nodes"),
		PerNode: rapid.IntRange(1, perSlot+1).Draw(t, "per node")}
	shape.Short = drawShort(t, shape.Nodes, shape.PerNode)
	return shape
}

func TestWhatFindNamesCanBePlaced(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, shape := drawSlots(t), drawShape(t)
		from := rapid.IntRange(0, 25).Draw(t, "start")
		iv := hours(from, from+rapid.IntRange(1, 8).Draw(t, "length"))
		slots, ok := d.slots.Find(shape, iv, nil)
		require.Equal(t, d.hasRoomFor(shape, iv), ok, "it is found if and only if it is there")
		rooms := d.slots.RoomsIn(iv, calendar.TiersOf(d.slots.Size(), nil))
		require.Len(t, rooms, perSlot+1)
		for gpus, n := range rooms {
			require.Equal(t, d.countRoom(gpus, iv), n)
		}
		if ok {
			require.Len(t, slots, shape.Nodes)
			require.NoError(t,
				d.slots.Place(calendar.Booking{ID: "new", Interval: iv, Slots: slots, GPUs: shape.PerNode,
					Short: shape.Short}))
		}
	})
}

func TestEarliestIsTheFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, shape := drawSlots(t), drawShape(t)
		length := rapid.IntRange(1, 8).Draw(t, "length")
		from := rapid.IntRange(0, 25).Draw(t, "from")
		until := from + rapid.IntRange(-1, 12).Draw(t, "until")
		want, found := 0, false
		for hour := from; hour <= until && !found; hour++ { // every booking begins and ends at a full hour
			want, found = hour, d.hasRoomFor(shape, hours(hour, hour+length))
		}
		start, slots, ok := d.slots.Earliest(shape, time.Duration(length)*time.Hour, at(from), at(until))
		require.Equal(t, found, ok)
		if !ok {
			return
		}
		require.Equal(t, at(want), start)
		require.NoError(t,
			d.slots.Place(calendar.Booking{ID: "new", Interval: hours(want, want+length), Slots: slots,
				GPUs: shape.PerNode, Short: shape.Short}))
	})
}

func TestEarliestTouchesItsNeighbours(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(1, 8)
	require.NoError(t, s.Place(booking("a", hours(9, 12), 8, 0)))
	require.NoError(t, s.Place(booking("b", hours(14, 16), 8, 0)))
	for _, tc := range []struct{ from, length, want int }{
		{6, 3, 6}, {7, 3, 16}, {7, 2, 7}, {8, 2, 12}, {10, 2, 12}, {10, 3, 16}, {16, 9, 16},
	} {
		start, slots, ok := s.Earliest(capacity.Shape{Nodes: 1, PerNode: 1}, time.Duration(tc.length)*time.Hour,
			at(tc.from),
			at(16))
		require.True(t, ok)
		require.Equal(t, at(tc.want), start, "%d hours from %d", tc.length, tc.from)
		require.Equal(t, []int{0}, slots)
	}
	_, _, ok := s.Earliest(capacity.Shape{Nodes: 1, PerNode: 1}, 3*time.Hour, at(7), at(15))
	require.False(t, ok, "the first free start is too late")
}

func TestEarliestOfNothing(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(2, 8)
	for _, shape := range []capacity.Shape{{}, {Nodes: 3, PerNode: 1}, {Nodes: 1, PerNode: 9},
		{Nodes: -1, PerNode: -1}} {
		_, _, ok := s.Earliest(shape, time.Hour, at(0), at(24))
		require.False(t, ok, shape)
	}
	_, _, ok := s.Earliest(capacity.Shape{Nodes: 1, PerNode: 1}, 0, at(0), at(24))
	require.False(t, ok)
}
