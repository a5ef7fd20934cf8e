package events_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/server/events"
)

// numbered returns events with the numbers from one to another.
func numbered(from, to int64) []ledger.Event {
	var list []ledger.Event
	for seq := from; seq <= to; seq++ {
		e := ledger.Event{Seq: seq, OrganizationID: "org_1", Subject: "rsv_1", Type: "reservation.booked"}
		if seq%2 == 0 {
			e.OrganizationID, e.Subject, e.Type = "org_2", "rsv_2", "reservation.ready"
		}
		list = append(list, e)
	}
	return list
}

// seqs are the numbers of events.
func seqs(list []ledger.Event) []int64 {
	out := []int64{}
	for _, e := range list {
		out = append(out, e.Seq)
	}
	return out
}

// TestWhatIsRememberedHasNoGap: what is answered from memory is all that there is.
func TestWhatIsRememberedHasNoGap(t *testing.T) {
	t.Parallel()
	all := ledger.Scope{All: true}
	var r events.Recent
	_, _, ok := r.Match(all, ledger.EventFilter{}, 0)
	require.False(t, ok, "nothing was read yet")
	r.Add(3, numbered(4, 6))
	_, _, ok = r.Match(all, ledger.EventFilter{}, 2)
	require.False(t, ok, "the third was not read")
	found, upTo, ok := r.Match(all, ledger.EventFilter{}, 3)
	require.True(t, ok)
	require.Equal(t, []int64{4, 5, 6}, seqs(found))
	require.Equal(t, int64(6), upTo)
	r.Add(6, numbered(8, 9)) // the numbers of the journal have gaps of their own
	found, upTo, _ = r.Match(all, ledger.EventFilter{}, 5)
	require.Equal(t, []int64{6, 8, 9}, seqs(found))
	require.Equal(t, int64(9), upTo)
	r.Add(20, numbered(21, 22))
	_, _, ok = r.Match(all, ledger.EventFilter{}, 9)
	require.False(t, ok, "what came between was not read")
	found, _, ok = r.Match(all, ledger.EventFilter{}, 20)
	require.True(t, ok)
	require.Equal(t, []int64{21, 22}, seqs(found))
	_, upTo, ok = r.Match(all, ledger.EventFilter{}, 99)
	require.True(t, ok)
	require.Equal(t, int64(99), upTo, "who is further on stays there")
}

// TestTheOldestIsForgotten: memory is bounded, and what follows knows from where on it
// is whole.
func TestTheOldestIsForgotten(t *testing.T) {
	t.Parallel()
	var r events.Recent
	r.Add(0, numbered(1, 10))
	r.Add(10, numbered(11, events.Keep+5))
	_, _, ok := r.Match(ledger.Scope{All: true}, ledger.EventFilter{}, 4)
	require.False(t, ok)
	found, _, ok := r.Match(ledger.Scope{All: true}, ledger.EventFilter{}, 5)
	require.True(t, ok)
	require.Len(t, found, events.Keep)
}

// TestWhoSeesWhatIsRemembered: a filter in memory means what it means in the database.
func TestWhoSeesWhatIsRemembered(t *testing.T) {
	t.Parallel()
	var r events.Recent
	r.Add(0, numbered(1, 4))
	for name, c := range map[string]struct {
		scope  ledger.Scope
		filter ledger.EventFilter
		want   []int64
	}{
		"a tenant": {scope: ledger.Scope{OrganizationID: "org_2"}, want: []int64{2, 4}},
		"nobody":   {want: []int64{}},
		"one subject": {scope: ledger.Scope{All: true}, filter: ledger.EventFilter{Subject: "rsv_1"},
			want: []int64{1, 3}},
		"the start of a type": {scope: ledger.Scope{All: true}, filter: ledger.EventFilter{Type: "reservation.r"},
			want: []int64{2, 4}},
		"another's subject": {scope: ledger.Scope{OrganizationID: "org_2"}, filter: ledger.EventFilter{Subject: "rsv_1"},
			want: []int64{}},
	} {
		found, upTo, ok := r.Match(c.scope, c.filter, 0)
		require.True(t, ok, name)
		require.Equal(t, c.want, seqs(found), name)
		require.Equal(t, int64(4), upTo, name)
	}
}
