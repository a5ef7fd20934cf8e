package calendar_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
)

// tenant is an occupant of whole slots.
type tenant struct {
	id    string
	when  calendar.Interval
	slots []int
	gone  bool
}

func (o tenant) Occupies(perSlot int) (calendar.Booking, bool) {
	return booking(o.id, o.when, perSlot, o.slots...), !o.gone
}

// Build is what placing the entries one after the other gives: those of every source,
// in any order, and none of who takes nothing.
func TestACalendarIsWhatItsOccupantsTake(t *testing.T) {
	t.Parallel()
	p := capacity.Pool{MaxNodes: 3, PerNode: 8, Timers: capacity.Timers{Cleaning: 10 * time.Minute}}
	want := calendar.NewSlots(3, 8)
	want.SetMargin(10 * time.Minute)
	require.Equal(t, want.String(), calendar.Build(p).String(), "of nobody")

	served := []tenant{{id: "a", when: hours(9, 12), slots: []int{0, 2}},
		{id: "b", when: hours(10, 11), slots: []int{1}, gone: true}}
	observed := []tenant{{id: "c", when: hours(11, 14), slots: []int{2}}}
	require.NoError(t, want.Place(booking("a", hours(9, 12), 8, 0, 2)))
	want.Force(booking("c", hours(11, 14), 8, 2)) // where another is already
	require.Equal(t, want.String(),
		calendar.Build(p, calendar.Occupants(served), calendar.Occupants(observed)).String())
	require.Equal(t, want.String(),
		calendar.Build(p, calendar.Occupants(observed), calendar.Occupants(served)).String())
}

// Occupy replaces what the occupant took before, and takes out who has left.
func TestAnOccupantMovesAndLeaves(t *testing.T) {
	t.Parallel()
	s := calendar.NewSlots(2, 8)
	o := tenant{id: "a", when: hours(9, 12), slots: []int{0}}
	s.Occupy(o)
	require.False(t, s.Fits(0, 1, hours(10, 11)))
	o.slots = []int{1}
	s.Occupy(o)
	require.True(t, s.Fits(0, 8, hours(10, 11)))
	require.False(t, s.Fits(1, 1, hours(10, 11)))
	o.gone = true
	s.Occupy(o)
	require.Equal(t, calendar.NewSlots(2, 8).String(), s.String())
	s.Occupy(o)
	require.Equal(t, calendar.NewSlots(2, 8).String(), s.String(), "it is out already")
}

func TestOccupantsEndWithTheirReader(t *testing.T) {
	t.Parallel()
	var seen []calendar.Occupant
	for o := range calendar.Occupants([]tenant{{id: "a"}, {id: "b"}}) {
		seen = append(seen, o)
		break
	}
	require.Equal(t, []calendar.Occupant{&tenant{id: "a"}}, seen)
}

// However many occupants there are, and wherever: what is built at once answers as
// what was placed one by one.
func TestACalendarBuiltAtOnceIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := capacity.Pool{MaxNodes: rapid.IntRange(0, 4).Draw(t, "slots"), PerNode: 8,
			Timers: capacity.Timers{Cleaning: time.Duration(rapid.IntRange(0, 90).Draw(t, "cleaning")) * time.Minute}}
		want := calendar.NewSlots(p.MaxNodes, p.PerNode)
		want.SetMargin(p.Timers.Cleaning)
		all := rapid.SliceOfN(rapid.Custom(drawTenant), 0, 40).Draw(t, "tenants")
		for i := range all {
			want.Occupy(all[i])
		}
		built := calendar.Build(p, calendar.Occupants(all))
		require.Equal(t, want.Dump(), built.Dump())
		require.Equal(t, want.Outside(), built.Outside())
		iv := drawQuarters(t)
		for slot := range p.MaxNodes + 2 {
			require.Equal(t, want.On(slot, iv), built.On(slot, iv))
		}
		shape := capacity.Shape{Nodes: 1, PerNode: rapid.IntRange(1, 8).Draw(t, "gpus")}
		slots, ok := want.Find(shape, iv, nil)
		same, found := built.Find(shape, iv, nil)
		require.Equal(t, ok, found)
		require.Equal(t, slots, same)
		for i := range all { // and goes on alike
			all[i].gone = true
			built.Occupy(all[i])
		}
		want = calendar.NewSlots(p.MaxNodes, p.PerNode)
		want.SetMargin(p.Timers.Cleaning)
		require.Equal(t, want.String(), built.String())
	})
}

func drawTenant(t *rapid.T) tenant {
	return tenant{id: rapid.StringMatching(`[a-z]`).Draw(t, "id"), when: drawQuarters(t),
		slots: rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, 3, rapid.ID[int]).Draw(t, "on"),
		gone:  rapid.IntRange(0, 9).Draw(t, "gone") == 0}
}
