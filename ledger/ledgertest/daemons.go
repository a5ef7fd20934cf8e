package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/activity"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

func fullPresence(nodeID string) ledger.Presence {
	return ledger.Presence{NodeID: nodeID, SeenAt: day, BootID: "boot", Epoch: 1 << 40, Program: "1.2.3",
		Look: []byte(`{"gpus":[]}`), Activity: []activity.Open{
			{GPU: gpuUUID(nodeID, 0), Since: day.Add(-time.Hour), Quiet: day.Add(-time.Microsecond)},
			{GPU: gpuUUID(nodeID, 1), Since: day.Add(-2 * time.Hour), Idle: true},
		}}
}

func fullDaemon(nodeID string) ledger.Daemon {
	return ledger.Daemon{NodeID: nodeID, Generation: 3,
		TokenID: "token", TokenHash: []byte{1, 255}, TokenExpires: day, TokenUsed: day.Add(time.Second),
		KeyID: "key", KeyHash: []byte{2}, KeyExpires: day.Add(time.Hour),
		OldKeyID: "old", OldKeyHash: []byte{3}, OldKeyUntil: day.Add(time.Minute),
		BootID: "boot", JoinedAt: day, Clears: 4, RefusedAt: day.Add(2 * time.Second)}
}

// daemonsAreFound by their nodes and by each of their ids, with every field; two nodes never
// have the same key, and what a daemon says replaces what it said.
func daemonsAreFound(w *world) {
	saveGround(w)
	w.mustSave(ledger.Change{Nodes: []node.Node{readyNode(w, "nod_3", "pol_1", 5, day),
		readyNode(w, "nod_4", "pol_1", 6, day)}})
	full, bare := fullDaemon("nod_3"), ledger.Daemon{NodeID: "nod_3"}
	for i, version := range []ledger.Daemon{full, bare, full} {
		version.Version = i
		w.mustSave(ledger.Change{Daemons: []ledger.Daemon{version}})
		version.Version++
		require.Equal(w, version, readValue(w, func(r ledger.Reader) (ledger.Daemon, error) { return r.Daemon("nod_3") }))
	}
	require.ErrorIs(w, w.save(ledger.Change{Daemons: []ledger.Daemon{{NodeID: "nod_3", Version: 1}}}), ledger.ErrConflict)
	require.Error(w, w.save(ledger.Change{Daemons: []ledger.Daemon{{NodeID: "nod_4", KeyID: "key"}}}), "a taken key")
	w.mustSave(ledger.Change{Daemons: []ledger.Daemon{{NodeID: "nod_4"}}})
	for _, id := range []string{"token", "key", "old"} {
		found := readValue(w, func(r ledger.Reader) (ledger.Daemon, error) { return r.DaemonByKey(id) })
		require.Equal(w, "nod_3", found.NodeID)
	}
	first, later := fullPresence("nod_3"), fullPresence("nod_4")
	later.SeenAt = day.Add(time.Second)
	w.mustSave(ledger.Change{Presences: []ledger.Presence{later, first}})
	said := func(after time.Time) []ledger.Presence {
		return readValue(w, func(r ledger.Reader) ([]ledger.Presence, error) { return r.Presences(after) })
	}
	require.Equal(w, []ledger.Presence{first, later}, said(time.Time{}))
	require.Equal(w, []ledger.Presence{later}, said(day))
	first.SeenAt, first.Program, first.Epoch, first.Look = day.Add(time.Minute), "2", 7, []byte("{}")
	first.BootID = "next"
	w.mustSave(ledger.Change{Presences: []ledger.Presence{first}})
	require.Equal(w, []ledger.Presence{later, first}, said(time.Time{}))
	require.Equal(w, first, readValue(w, func(r ledger.Reader) (ledger.Presence, error) { return r.Presence("nod_3") }))
	require.Equal(w, map[string]time.Time{"nod_3": first.SeenAt, "nod_4": later.SeenAt},
		readValue(w, func(r ledger.Reader) (map[string]time.Time, error) {
			return r.DaemonsSeen([]string{"nod_3", "nod_4", "nobody"})
		}))
	require.Equal(w, map[string]ledger.Presence{"nod_3": first},
		readValue(w, func(r ledger.Reader) (map[string]ledger.Presence, error) {
			return r.PresencesOf([]string{"nod_3", "nod_1", "nobody"})
		}))
	full.Version = 3
	n3 := readValue(w, func(r ledger.Reader) (node.Node, error) { return r.BareNode("nod_3") })
	require.Empty(w, n3.Devices)
	require.Equal(w, 5, n3.Slot)
	known := func(id string) ledger.DaemonState {
		return readValue(w, func(r ledger.Reader) (ledger.DaemonState, error) { return r.DaemonState(id) })
	}
	require.Equal(w, ledger.DaemonState{Daemon: full, Node: n3, Said: first, MinDriver: "535.104"}, known("nod_3"))
	w.mustSave(ledger.Change{Nodes: []node.Node{readyNode(w, "nod_5", "pol_1", 7, day)},
		Daemons: []ledger.Daemon{{NodeID: "nod_5"}}})
	require.Zero(w, known("nod_5").Said)
	w.readSnapshot(func(r ledger.Reader) error {
		for _, id := range []string{"", "nobody", "nod_1"} {
			_, err := r.DaemonState(id)
			require.ErrorIs(w, err, ledger.ErrNotFound)
		}
		for _, id := range []string{"", "nobody"} {
			_, err := r.DaemonByKey(id)
			require.ErrorIs(w, err, ledger.ErrNotFound)
			_, err = r.Daemon(id)
			require.ErrorIs(w, err, ledger.ErrNotFound)
			_, err = r.Presence(id)
			require.ErrorIs(w, err, ledger.ErrNotFound)
		}
		return nil
	})
}

// stretchesAreFound by node and period: those that are over, and those that are open as far as
// the last look. One that is written again is not there twice.
func stretchesAreFound(w *world) {
	saveGround(w)
	w.mustSave(ledger.Change{Nodes: []node.Node{readyNode(w, "nod_3", "pol_1", 5, day),
		readyNode(w, "nod_4", "pol_1", 6, day)}})
	stretch := func(from, until int, idle bool) activity.Stretch {
		return activity.Stretch{GPU: "GPU-1", Idle: idle,
			Interval: calendar.Interval{Start: day.Add(time.Duration(from) * time.Hour),
				End: day.Add(time.Duration(until) * time.Hour)}}
	}
	used, idle, open := stretch(0, 1, false), stretch(1, 3, true), stretch(5, 6, true)
	other := stretch(0, 2, true)
	w.mustSave(ledger.Change{
		GPUStretches: []ledger.GPUStretch{{NodeID: "nod_3", Stretch: used}, {NodeID: "nod_3", Stretch: idle},
			{NodeID: "nod_4", Stretch: other}},
		Presences: []ledger.Presence{{NodeID: "nod_3", SeenAt: open.End, Look: []byte("{}"),
			Activity: []activity.Open{{GPU: open.GPU, Since: open.Start, Idle: true}}}},
	})
	w.mustSave(ledger.Change{GPUStretches: []ledger.GPUStretch{{NodeID: "nod_3", Stretch: used}}})
	found := func(from, to int, ids ...string) map[string][]activity.Stretch {
		during := map[string]calendar.Interval{}
		for _, id := range ids {
			during[id] = stretch(from, to, false).Interval
		}
		return readValue(w, func(r ledger.Reader) (map[string][]activity.Stretch, error) { return r.GPUStretches(during) })
	}
	require.Equal(w, map[string][]activity.Stretch{"nod_3": {used, idle, open}, "nod_4": {other}},
		found(0, 9, "nod_3", "nod_4", "nobody"))
	require.Equal(w, map[string][]activity.Stretch{"nod_3": {idle}}, found(1, 5, "nod_3"))
	require.Equal(w, map[string][]activity.Stretch{"nod_3": {open}}, found(3, 9, "nod_3"))
	require.Empty(w, found(6, 9, "nod_3", "nod_4"))
	require.Empty(w, found(0, 9))
	each := map[string]calendar.Interval{"nod_3": stretch(0, 1, false).Interval, "nod_4": stretch(2, 9, false).Interval}
	require.Equal(w, map[string][]activity.Stretch{"nod_3": {used}},
		readValue(w, func(r ledger.Reader) (map[string][]activity.Stretch, error) { return r.GPUStretches(each) }),
		"each node's in a period of its own")
}
