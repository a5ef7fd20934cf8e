package calendar_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// quarterHour returns the instant so many quarters of an hour after monday: whole
// hours and parts of them are both common.
func quarterHour(n int) time.Time { return monday.Add(time.Duration(n) * 15 * time.Minute) }

func quarterHours(from, to int) calendar.Interval {
	return calendar.Interval{Start: quarterHour(from), End: quarterHour(to)}
}

// model is a calendar and what it should know, kept as a plain list.
type model struct {
	slots      *calendar.Slots
	n, perSlot int
	margin     time.Duration
	bookings   []calendar.Booking
	made       int
}

// usedAt counts a slot's GPUs at an instant, cleaning included.
func (m *model) usedAt(slot int, when time.Time) int {
	sum := 0
	for _, b := range m.bookings {
		iv := calendar.Interval{Start: b.Interval.Start, End: b.Interval.End.Add(m.margin)}
		if iv.Contains(when) {
			for i, on := range b.Slots {
				if on == slot {
					sum += onNode(b, i)
				}
			}
		}
	}
	return sum
}

// freeDuring is what a slot has free during an interval and the margin after it: use
// rises only where a booking starts.
func (m *model) freeDuring(slot int, iv calendar.Interval) int {
	iv.End = iv.End.Add(m.margin)
	peak := m.usedAt(slot, iv.Start)
	for _, b := range m.bookings {
		if iv.Contains(b.Interval.Start) && slices.Contains(b.Slots, slot) {
			peak = max(peak, m.usedAt(slot, b.Interval.Start))
		}
	}
	return max(0, m.perSlot-peak)
}

func drawModel(t *rapid.T) *model {
	m := &model{n: rapid.SampledFrom([]int{1, 2, 5, 65, 70, 130}).Draw(t, "n"),
		perSlot: rapid.IntRange(1, 9).Draw(t, "per slot")}
	m.slots = calendar.NewSlots(m.n, m.perSlot)
	for range rapid.IntRange(0, 25).Draw(t, "steps") {
		m.drawStep(t)
	}
	return m
}

func (m *model) drawStep(t *rapid.T) {
	switch op := rapid.IntRange(0, 19).Draw(t, "op"); {
	case op < 10:
		m.bookOne(t)
	case op < 13 && len(m.bookings) > 0:
		m.removeOne(rapid.IntRange(0, len(m.bookings)-1).Draw(t, "which"))
	case op < 15 && len(m.bookings) > 0:
		m.moveOne(t)
	case op == 15:
		m.margin = time.Duration(rapid.IntRange(0, 3).Draw(t, "margin")) * 15 * time.Minute
		m.slots.SetMargin(m.margin)
	case op == 16:
		m.n = max(1, m.n+rapid.IntRange(-3, 3).Draw(t, "grow"))
		m.slots.Resize(m.n)
	default: // questions in between build the index, which must then follow
		m.slots.Find(capacity.Shape{Nodes: 1, PerNode: 1}, quarterHours(0, 8), nil)
	}
}

// drawNearSlots draws slots from few, so that bookings meet, on both sides of the end of a
// word.
func (m *model) drawNearSlots(t *rapid.T) []int {
	few := rapid.SampledFrom([]int{0, 1, 2, m.n / 2, m.n - 2, m.n - 1, m.n})
	return rapid.SliceOfN(few, 1, 4).Draw(t, "on")
}

func drawQuarters(t *rapid.T) calendar.Interval {
	from := rapid.IntRange(0, 120).Draw(t, "from")
	return quarterHours(from, from+rapid.SampledFrom([]int{1, 2, 4, 5, 16, 31, 70}).Draw(t, "length"))
}

func (m *model) bookOne(t *rapid.T) {
	m.made++
	b := booking(fmt.Sprint("b", m.made), drawQuarters(t), rapid.IntRange(1, m.perSlot).Draw(t, "gpus"),
		m.drawNearSlots(t)...)
	b.Short = drawShort(t, len(b.Slots), b.GPUs)
	if rapid.Bool().Draw(t, "force") {
		m.slots.Force(b)
		m.bookings = append(m.bookings, b)
		return
	}
	if m.fits(b) {
		require.NoError(t, m.slots.Place(b))
		m.bookings = append(m.bookings, b)
	} else {
		require.Error(t, m.slots.Place(b))
	}
}

func (m *model) fits(b calendar.Booking) bool {
	for i, slot := range b.Slots {
		if slot < 0 || slot >= m.n || slices.Contains(b.Slots[:i], slot) ||
			m.freeDuring(slot, b.Interval) < onNode(b, i) {
			return false
		}
	}
	return true
}

func (m *model) removeOne(i int) {
	m.slots.Remove(m.bookings[i].ID)
	m.bookings = slices.Delete(m.bookings, i, i+1)
}

func (m *model) moveOne(t *rapid.T) {
	i := rapid.IntRange(0, len(m.bookings)-1).Draw(t, "which")
	b, to := m.bookings[i], m.drawNearSlots(t)
	fits := len(to) == len(b.Slots)
	for j, slot := range to {
		more := 0
		if fits {
			more = onNode(b, j) - b.On(slot)
		}
		fits = fits && !slices.Contains(to[:j], slot) &&
			(more <= 0 || slot >= 0 && slot < m.n && m.freeDuring(slot, b.Interval) >= more)
	}
	if err := m.slots.Move(b.ID, to); fits {
		require.NoError(t, err)
		m.bookings[i].Slots = to
	} else {
		require.Error(t, err)
	}
}

func drawTiers(t *rapid.T, n int) (calendar.Tiers, []int) {
	ranks := make([]int, n)
	if rapid.Bool().Draw(t, "no tiers") {
		return nil, ranks
	}
	kind := rapid.IntRange(1, 7).Draw(t, "kind")
	for slot := range ranks {
		ranks[slot] = (slot*kind)%4 - 1
	}
	return calendar.TiersOf(n, func(slot int) int { return ranks[slot] }), ranks
}

func TestFindAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		tiers, ranks := drawTiers(t, m.n)
		iv := drawQuarters(t)
		shape := capacity.Shape{Nodes: rapid.SampledFrom([]int{1, 2, m.n / 2, m.n - 1, m.n, m.n + 1}).Draw(t, "nodes"),
			PerNode: rapid.IntRange(0, m.perSlot+1).Draw(t, "per node")}
		shape.Short = drawShort(t, shape.Nodes, shape.PerNode)
		rooms := make([]int, m.perSlot+1)
		total := 0
		for slot := range m.n {
			free := m.freeDuring(slot, iv)
			total += free
			for g := 0; g <= free && ranks[slot] >= 0; g++ {
				rooms[g]++
			}
		}
		require.Equal(t, rooms, m.slots.RoomsIn(iv, tiers))
		require.Equal(t, total, m.slots.Free(iv))
		found, ok := m.slots.FindInto([]int{-7}, shape, iv, tiers)
		possible := shape.Nodes > 0 && shape.PerNode > 0 && shape.PerNode <= m.perSlot && holdsShape(rooms, shape)
		require.Equal(t, possible, ok, "it is found if and only if it is there")
		require.Equal(t, -7, found[0])
		if ok {
			m.checkFound(t, found[1:], shape, iv, ranks)
		} else {
			require.Len(t, found, 1)
		}
	})
}

// checkFound checks that slots are free, once each, ordered by tier, and that no
// slot of a better tier was left out.
func (m *model) checkFound(t *rapid.T, found []int, shape capacity.Shape, iv calendar.Interval, ranks []int) {
	require.Len(t, found, shape.Nodes)
	full, last := found[:shape.Full()], found[shape.Full():]
	m.checkBest(t, full, nil, shape.PerNode, iv, ranks)
	if len(last) > 0 {
		m.checkBest(t, last, full, shape.Least(), iv, ranks)
	}
}

// holdsShape reports whether the counted rooms hold the shape.
func holdsShape(rooms []int, shape capacity.Shape) bool {
	return rooms[shape.PerNode] >= shape.Full() && rooms[shape.PerNode-shape.Short] >= shape.Nodes
}

// onNode is what a booking has on its i-th slot.
func onNode(b calendar.Booking, i int) int {
	if i == len(b.Slots)-1 {
		return b.GPUs - b.Short
	}
	return b.GPUs
}

// drawShort draws how many GPUs the last of some nodes has fewer.
func drawShort(t *rapid.T, nodes, gpus int) int {
	if nodes < 2 || gpus < 2 || rapid.Bool().Draw(t, "even") {
		return 0
	}
	return rapid.IntRange(1, gpus-1).Draw(t, "short")
}

// checkBest checks the slots of nodes that are alike, of which those before were
// taken already.
func (m *model) checkBest(t *rapid.T, found, before []int, need int, iv calendar.Interval, ranks []int) {
	require.True(t, slices.IsSortedFunc(found, func(a, b int) int { return cmp.Compare(ranks[a], ranks[b]) }))
	for i, slot := range found {
		require.GreaterOrEqual(t, m.freeDuring(slot, iv), need)
		require.NotContains(t, found[:i], slot)
		require.NotContains(t, before, slot)
	}
	worst := ranks[found[len(found)-1]]
	for slot := range m.n {
		if ranks[slot] >= 0 && ranks[slot] < worst && m.freeDuring(slot, iv) >= need && !slices.Contains(before, slot) {
			require.Contains(t, found, slot)
		}
	}
}

// Whole hours leave nothing to guess: among them the fit is the best.
func TestBestFitInWholeHours(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{n: rapid.SampledFrom([]int{5, 70}).Draw(t, "n"), perSlot: 8}
		m.slots = calendar.NewSlots(m.n, 8)
		for i := range rapid.IntRange(0, 12).Draw(t, "bookings") {
			from := rapid.IntRange(0, 20).Draw(t, "from")
			b := booking(fmt.Sprint(i), hours(from, from+rapid.IntRange(1, 40).Draw(t, "length")),
				rapid.IntRange(1, 8).Draw(t, "gpus"), rapid.IntRange(0, 4).Draw(t, "slot"))
			if m.slots.Place(b) == nil {
				m.bookings = append(m.bookings, b)
			}
		}
		from := rapid.IntRange(0, 40).Draw(t, "start")
		iv := hours(from, from+rapid.IntRange(1, 30).Draw(t, "hours"))
		need := rapid.IntRange(1, 8).Draw(t, "need")
		var want []int
		for slot := range m.n {
			if m.freeDuring(slot, iv) >= need {
				want = append(want, slot)
			}
		}
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(m.freeDuring(a, iv), m.freeDuring(b, iv)) })
		if len(want) == 0 {
			return
		}
		got, ok := m.slots.Find(capacity.Shape{Nodes: len(want), PerNode: need}, iv, nil)
		require.True(t, ok)
		require.Equal(t, want, got)
	})
}

func TestTheCalendarIsWhatItsBookingsAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		again := calendar.NewSlots(m.n, m.perSlot)
		again.SetMargin(m.margin)
		for _, b := range rapid.Permutation(m.bookings).Draw(t, "order") {
			again.Force(b)
		}
		require.Equal(t, again.Dump(), m.slots.Dump(), "whatever the history")
		require.Equal(t, again.Outside(), m.slots.Outside())
		for _, b := range m.bookings {
			m.slots.Remove(b.ID)
		}
		empty := calendar.NewSlots(m.n, m.perSlot)
		empty.SetMargin(m.margin)
		require.Equal(t, empty.Dump(), m.slots.Dump())
	})
}

func TestOnAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		iv := drawQuarters(t)
		for _, slot := range []int{-1, 0, 1, m.n / 2, m.n - 1, m.n, m.n + 2} {
			var on []calendar.Booking
			for _, b := range m.bookings {
				if !slices.Contains(b.Slots, slot) {
					continue
				}
				if b.Interval.Overlaps(iv) {
					on = append(on, b)
				}
			}
			slices.SortFunc(on, func(a, b calendar.Booking) int {
				return cmp.Or(a.Interval.Start.Compare(b.Interval.Start), cmp.Compare(a.ID, b.ID))
			})
			require.Equal(t, on, m.slots.On(slot, iv))
		}
	})
}

func TestEarliestAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		shape := capacity.Shape{Nodes: rapid.SampledFrom([]int{1, m.n - 1, m.n}).Draw(t, "nodes"),
			PerNode: rapid.IntRange(1, m.perSlot).Draw(t, "per node")}
		shape.Short = drawShort(t, shape.Nodes, shape.PerNode)
		length := rapid.SampledFrom([]int{1, 3, 8, 14, 40}).Draw(t, "length")
		from := rapid.IntRange(0, 120).Draw(t, "from")
		until := from + rapid.IntRange(0, 40).Draw(t, "span")
		want, found := 0, false
		for start := from; start <= until && !found && shape.Nodes > 0; start++ {
			want, found = start, m.hasRoomFor(shape, quarterHours(start, start+length), make([]int, m.n))
		}
		start, slots, ok := m.slots.Earliest(shape, time.Duration(length)*15*time.Minute, quarterHour(from),
			quarterHour(until))
		require.Equal(t, found, ok)
		if ok {
			require.Equal(t, quarterHour(want), start)
			require.Len(t, slots, shape.Nodes)
		}
	})
}

func TestABookingOfACenturyIsCheap(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(100, 8)
	s.Force(calendar.Booking{ID: "for ever", Interval: calendar.Interval{Start: time.Time{},
		End: monday.AddDate(900, 0, 0)}, Slots: []int{3}, GPUs: 8})
	s.Force(booking("long", calendar.Interval{Start: monday, End: monday.AddDate(100, 0, 0)}, 8, 4))
	slots, ok := s.Find(capacity.Shape{Nodes: 98, PerNode: 8}, hours(5, 6), nil)
	require.True(t, ok)
	require.NotContains(t, slots, 3)
	require.NotContains(t, slots, 4)
	require.False(t, s.Fits(3, 1, calendar.Interval{Start: monday.AddDate(-200, 0, 0), End: monday}))
	s.Remove("for ever")
	s.Remove("long")
	require.Equal(t, calendar.NewSlots(100, 8).Dump(), s.Dump())
}
