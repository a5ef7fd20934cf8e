package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

func fullPresence(nodeID string) ledger.Presence {
	return ledger.Presence{NodeID: nodeID, SeenAt: day, BootID: "boot", Epoch: 1 << 40, Program: "1.2.3",
		Look: []byte(`{"gpus":[]}`)}
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
	w.readSnapshot(func(r ledger.Reader) error {
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
