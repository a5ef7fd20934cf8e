// Package statemachine is the shape shared by every state machine of the product:
// one table of transitions that decides what is legal, and from which the
// diagram in docs/, the CHECK lists in SQL, the enums of the API and the labels
// of the metrics are generated.
package statemachine

import (
	"fmt"
	"slices"
	"strings"
)

// Transition is one legal step: event Event moves From to To.
type Transition[S, E ~string] struct {
	From  S
	Event E
	To    S
}

// Table is a whole machine. States is in reading order, the initial states
// first; a state with no way out is terminal. A Table is written once as a
// package variable and never changed.
type Table[S, E ~string] struct {
	Name        string
	Initial     []S
	States      []S
	Transitions []Transition[S, E]
}

// IllegalError says that an event cannot happen in a state. Callers choose by
// it: a repeated or late event is not a fault of the system.
type IllegalError struct {
	Machine, State, Event string
}

// Error names the machine, the state and the event.
func (e *IllegalError) Error() string {
	return fmt.Sprintf("%s: event %q is not possible in state %q", e.Machine, e.Event, e.State)
}

// Next returns the state that event leads to, or an *IllegalError.
func (t *Table[S, E]) Next(from S, event E) (S, error) {
	for _, tr := range t.Transitions {
		if tr.From == from && tr.Event == event {
			return tr.To, nil
		}
	}
	return from, &IllegalError{Machine: t.Name, State: string(from), Event: string(event)}
}

// Known reports whether s is a state of the machine.
func (t *Table[S, E]) Known(s S) bool { return slices.Contains(t.States, s) }

// Terminal reports whether no event leads out of s.
func (t *Table[S, E]) Terminal(s S) bool {
	return !slices.ContainsFunc(t.Transitions, func(tr Transition[S, E]) bool { return tr.From == s })
}

// Live returns the states that are not terminal, in table order.
func (t *Table[S, E]) Live() []S {
	var live []S
	for _, s := range t.States {
		if !t.Terminal(s) {
			live = append(live, s)
		}
	}
	return live
}

// Names returns every state as a string, in table order: the enum.
func (t *Table[S, E]) Names() []string {
	names := make([]string, len(t.States))
	for i, s := range t.States {
		names[i] = string(s)
	}
	return names
}

// Events returns every event once, in the order of first use.
func (t *Table[S, E]) Events() []E {
	var events []E
	for _, tr := range t.Transitions {
		if !slices.Contains(events, tr.Event) {
			events = append(events, tr.Event)
		}
	}
	return events
}

// SQLCheck returns the condition that holds a column to the machine's states.
func (t *Table[S, E]) SQLCheck(column string) string {
	return column + " IN ('" + strings.Join(t.Names(), "', '") + "')"
}

// Mermaid returns the machine as a Mermaid state diagram.
func (t *Table[S, E]) Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, s := range t.Initial {
		fmt.Fprintf(&b, "    [*] --> %s\n", s)
	}
	for _, tr := range t.Transitions {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", tr.From, tr.To, tr.Event)
	}
	for _, s := range t.States {
		if t.Terminal(s) {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	return b.String()
}

// Check says what is wrong with the table: an unknown state, two ways for one
// event, a state nothing reaches.
func (t *Table[S, E]) Check() error {
	seen := map[string]bool{}
	reached := map[S]bool{}
	for _, s := range t.Initial {
		if !t.Known(s) {
			return fmt.Errorf("%s: initial state %s is unknown", t.Name, s)
		}
		reached[s] = true
	}
	for _, tr := range t.Transitions {
		if !t.Known(tr.From) || !t.Known(tr.To) {
			return fmt.Errorf("%s: %s --%s--> %s names an unknown state", t.Name, tr.From, tr.Event, tr.To)
		}
		key := string(tr.From) + "\x00" + string(tr.Event)
		if seen[key] {
			return fmt.Errorf("%s: event %s leads two ways from %s", t.Name, tr.Event, tr.From)
		}
		seen[key], reached[tr.To] = true, true
	}
	for _, s := range t.States {
		if !reached[s] {
			return fmt.Errorf("%s: nothing reaches state %s", t.Name, s)
		}
	}
	return nil
}
