package observe_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/observe"
	"github.com/forewarm/forewarm/core/reservation"
)

var nine = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// promise is one of the organization's, from a while after nine on, for an hour.
func promise(t require.TestingT, id, organization string, from time.Duration, to []reservation.Event,
	slots ...int) reservation.Reservation {
	r, err := reservation.New(reservation.Reservation{ID: id, OrganizationID: organization, Slots: slots,
		Shape:  capacity.Shape{Nodes: len(slots), PerNode: 8},
		Window: calendar.Interval{Start: nine.Add(from), End: nine.Add(from + time.Hour)}}, reservation.Booked, nine)
	require.NoError(t, err)
	for _, e := range to {
		r, err = r.Apply(e, "", nine)
		require.NoError(t, err)
	}
	return r
}

// forecast makes a promise one that nobody counts on.
func forecast(r reservation.Reservation) reservation.Reservation {
	r.Class = reservation.Speculative
	return r
}

var ready = []reservation.Event{reservation.Warm, reservation.BecomeReady}

func TestClaims(t *testing.T) {
	t.Parallel()
	lead := 5 * time.Minute
	all := []reservation.Reservation{
		forecast(promise(t, "soon", "ann", 4*time.Minute, nil, 4)),
		forecast(promise(t, "later", "ann", 6*time.Minute, nil, 5)),
		promise(t, "counted on", "ann", time.Minute, ready, 2),
		promise(t, "others", "bob", 0, ready, 6),
		promise(t, "pair", "ann", -time.Minute, ready, 0, 1),
		promise(t, "over", "ann", -time.Hour, ready, 7),
		promise(t, "gone", "ann", 0, []reservation.Event{reservation.Cancel}, 8),
	}
	for name, c := range map[string]struct {
		start observe.Start
		want  []observe.Claim
	}{
		"a part, on the slot that it took": {observe.Start{Slots: []int{1}, Nodes: 1},
			[]observe.Claim{{ReservationID: "pair", Slots: []int{1}}}},
		"a part, wherever it is": {observe.Start{Slots: []int{9}, Nodes: 1},
			[]observe.Claim{{ReservationID: "pair", Slots: []int{1}}}},
		"what is ready, then what is due": {observe.Start{Slots: []int{0, 1, 9}, Nodes: 3},
			[]observe.Claim{{ReservationID: "pair", Slots: []int{0, 1}}, {ReservationID: "soon", Slots: []int{4}}}},
		"more than was promised": {observe.Start{Slots: []int{0, 1, 4, 9}, Nodes: 4},
			[]observe.Claim{{ReservationID: "pair", Slots: []int{0, 1}}, {ReservationID: "soon", Slots: []int{4}}}},
		"a gang with a cold node": {observe.Start{Slots: []int{0}, Nodes: 2}, nil},
		"nothing warm":            {observe.Start{Nodes: 1}, nil},
	} {
		c.start.OrganizationID, c.start.At = "ann", nine
		require.Equal(t, c.want, observe.Claims(all, c.start, lead), name)
	}
}

// A node was warm from when it was ready until it was let go, or others had it booted.
func TestWasWarm(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return nine.Add(time.Duration(minutes) * time.Minute) }
	kept := node.Node{ReadyAt: at(-10), RetiredAt: at(30)}
	ended := kept
	ended.BilledUntil = at(10)
	for name, c := range map[string]struct {
		node  node.Node
		at    int
		boots []time.Time
		want  bool
	}{
		"while it was kept":           {kept, 0, nil, true},
		"as it became ready":          {kept, -10, nil, true},
		"before it was ready":         {kept, -11, nil, false},
		"once it was let go":          {kept, 30, nil, false},
		"that never was ready":        {node.Node{RetiredAt: at(30)}, 0, nil, false},
		"until its provider ended it": {ended, 9, nil, true},
		"after its provider ended it": {ended, 10, nil, false},
		"before others booted it":     {kept, 0, []time.Time{at(5)}, true},
		"after others booted it":      {kept, 5, []time.Time{at(5)}, false},
		"after its own boot":          {kept, 0, []time.Time{at(-10)}, true},
		"a gone one of long ago":      {node.Node{ReadyAt: at(-10), GoneAt: at(-5)}, 0, nil, false},
	} {
		require.Equal(t, c.want, observe.WasWarm(c.node, at(c.at), c.boots), name)
	}
}

func TestNoMoreIsClaimedThanWasTaken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all []reservation.Reservation
		slot := 0
		for range rapid.IntRange(0, 6).Draw(t, "promises") {
			var slots []int
			for range rapid.IntRange(1, 3).Draw(t, "nodes") {
				slots = append(slots, slot)
				slot++
			}
			from := time.Duration(rapid.IntRange(-70, 20).Draw(t, "minutes")) * time.Minute
			all = append(all, promise(t, string(rune('a'+slot)), rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "whose"),
				from, ready[:rapid.IntRange(0, 2).Draw(t, "steps")], slots...))
		}
		nodes := rapid.IntRange(1, 4).Draw(t, "taken")
		start := observe.Start{OrganizationID: "ann", At: nine, Nodes: nodes}
		for i := range nodes {
			start.Slots = append(start.Slots, i)
		}
		claimed := 0
		for _, c := range observe.Claims(all, start, 5*time.Minute) {
			i := slices.IndexFunc(all, func(r reservation.Reservation) bool { return r.ID == c.ReservationID })
			require.Equal(t, "ann", all[i].OrganizationID)
			require.NotEmpty(t, c.Slots)
			for _, s := range c.Slots {
				require.Contains(t, all[i].Slots, s)
			}
			claimed += len(c.Slots)
		}
		require.LessOrEqual(t, claimed, nodes)
	})
}
