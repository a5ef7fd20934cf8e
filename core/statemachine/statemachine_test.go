package statemachine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/core/statemachine"
)

var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

type light string

func newLamp() statemachine.Table[light, light] {
	return statemachine.Table[light, light]{
		Name: "lamp", Initial: []light{"off"}, States: []light{"off", "on", "broken"},
		Transitions: []statemachine.Transition[light, light]{
			{From: "off", Event: "press", To: "on"},
			{From: "on", Event: "press", To: "off"},
			{From: "on", Event: "burn", To: "broken"},
		},
	}
}

func TestATableAnswersWhatItSays(t *testing.T) {
	t.Parallel()
	table := newLamp()
	require.NoError(t, table.Check())
	require.Equal(t, []string{"off", "on", "broken"}, table.Names())
	require.Equal(t, []light{"press", "burn"}, table.Events())
	require.Equal(t, []light{"off", "on"}, table.Live())
	require.True(t, table.Terminal("broken"))
	require.False(t, table.Known("dim"))
	require.Equal(t, "state IN ('off', 'on', 'broken')", table.SQLCheck("state"))
	require.Equal(t, "stateDiagram-v2\n    [*] --> off\n    off --> on: press\n    on --> off: press\n"+
		"    on --> broken: burn\n    broken --> [*]\n", table.Mermaid())

	_, err := table.Next("broken", "press")
	require.EqualError(t, err, `lamp: event "press" is not possible in state "broken"`)
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*statemachine.Table[light, light])
		want   string
	}{
		"a step from nowhere": {func(m *statemachine.Table[light, light]) { m.Transitions[0].From = "dim" },
			"unknown state"},
		"a step to nowhere": {func(m *statemachine.Table[light, light]) { m.Transitions[0].To = "dim" },
			"unknown state"},
		"a start nobody knows": {
			func(m *statemachine.Table[light, light]) { m.Initial = append(m.Initial, "dim") }, "initial state dim",
		},
		"two ways": {func(m *statemachine.Table[light, light]) { m.Transitions[2].Event = "press" }, "two ways"},
		"an island": {
			func(m *statemachine.Table[light, light]) { m.States = append(m.States, "dim") },
			"nothing reaches state dim",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newLamp()
			tc.change(&table)
			require.ErrorContains(t, table.Check(), tc.want)
		})
	}
}

// life is what the three machines of the product have in common. V is compared
// whole: fmt prints the hidden state too.
type life[S, E ~string, V any] struct {
	table   *statemachine.Table[S, E]
	restore func(S) (V, error)
	apply   func(V, E) (V, error)
	state   func(V) S
	ended   func(V) time.Time
}

func walkLife[S, E ~string, V any](t *testing.T, l life[S, E, V]) {
	t.Helper()
	require.NoError(t, l.table.Check())
	legal := 0
	for _, from := range l.table.States {
		for _, event := range append(l.table.Events(), "no_such_event") {
			before, err := l.restore(from)
			require.NoError(t, err)
			was := fmt.Sprintf("%#v", before)
			after, err := l.apply(before, event)
			require.Equal(t, was, fmt.Sprintf("%#v", before), "the receiver is a value")
			want, illegal := l.table.Next(from, event)
			if illegal != nil {
				var e *statemachine.IllegalError
				require.True(t, errors.As(err, &e), "%s --%s-->", from, event)
				require.Equal(t, statemachine.IllegalError{Machine: l.table.Name, State: string(from),
					Event: string(event)},
					*e)
				require.Equal(t, was, fmt.Sprintf("%#v", after), "a refused event changes nothing")
				continue
			}
			legal++
			require.NoError(t, err)
			require.Equal(t, want, l.state(after))
			require.Equal(t, l.table.Terminal(want), l.ended(after).Equal(now), "%s --%s--> %s stamps its end", from,
				event, want)
		}
		if l.table.Terminal(from) {
			require.NotContains(t, l.table.Live(), from)
		}
	}
	require.Equal(t, len(l.table.Transitions), legal, "every listed step was walked")
	_, err := l.restore("no_such_state")
	require.ErrorContains(t, err, "unknown state")
}

func TestEveryEventInEveryState(t *testing.T) {
	t.Parallel()
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		walkLife(t, life[node.State, node.Event, node.Node]{
			table:   &node.Machine,
			restore: func(s node.State) (node.Node, error) { return node.Restore(node.Node{ID: "n"}, s) },
			apply:   func(n node.Node, e node.Event) (node.Node, error) { return n.Apply(e, "why", now) },
			state:   node.Node.State,
			ended:   func(n node.Node) time.Time { return n.GoneAt },
		})
	})
	t.Run("reservation", func(t *testing.T) {
		t.Parallel()
		walkLife(t, life[reservation.State, reservation.Event, reservation.Reservation]{
			table: &reservation.Machine,
			restore: func(s reservation.State) (reservation.Reservation, error) {
				return reservation.Restore(reservation.Reservation{ID: "r"}, s)
			},
			apply: func(r reservation.Reservation, e reservation.Event) (reservation.Reservation, error) {
				return r.Apply(e, "why", now)
			},
			state: reservation.Reservation.State,
			ended: func(r reservation.Reservation) time.Time { return r.EndedAt },
		})
	})
	t.Run("allocation", func(t *testing.T) {
		t.Parallel()
		walkLife(t, life[allocation.State, allocation.Event, allocation.Allocation]{
			table: &allocation.Machine,
			restore: func(s allocation.State) (allocation.Allocation, error) {
				return allocation.Restore(allocation.Allocation{ID: "a"}, s)
			},
			apply: func(a allocation.Allocation, e allocation.Event) (allocation.Allocation, error) {
				return a.Apply(e, "why", now)
			},
			state: allocation.Allocation.State,
			ended: func(a allocation.Allocation) time.Time { return a.EndedAt },
		})
	})
}

// What nothing can end would be billed, or held, for ever.
func TestEveryStateHasAWayToAnEnd(t *testing.T) {
	t.Parallel()
	require.Empty(t, endlessStates(&node.Machine))
	require.Empty(t, endlessStates(&reservation.Machine))
	require.Empty(t, endlessStates(&allocation.Machine))

	trap := newLamp()
	trap.Transitions[2].To = "off"
	require.Equal(t, []light{"off", "on"}, endlessStates(&trap))
}

func endlessStates[S, E ~string](table *statemachine.Table[S, E]) []S {
	ends := map[S]bool{}
	for _, s := range table.States {
		ends[s] = table.Terminal(s)
	}
	for range table.States {
		for _, tr := range table.Transitions {
			ends[tr.From] = ends[tr.From] || ends[tr.To]
		}
	}
	var stuck []S
	for _, s := range table.States {
		if !ends[s] {
			stuck = append(stuck, s)
		}
	}
	return stuck
}
