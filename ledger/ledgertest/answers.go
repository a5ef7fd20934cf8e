package ledgertest

import (
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

func answersAreStoredOnce(w *world) {
	saveGround(w)
	w.mustSave(ledger.Change{Replays: []ledger.Replay{newReplay("usr_1", "a"), newReplay("key_1", "a")}})
	hasOld := func() bool { return readValue(w, ledger.Reader.HasOldReplays) }
	require.False(w, hasOld())
	w.mustSave(ledger.Change{Replays: []ledger.Replay{newReplay("org_1", "a")}})
	require.True(w, hasOld())
	for name, ask := range map[string][3]string{
		"other owner": {"org_2", "POST /v1/reservations", "a"},
		"other route": {"org_1", "POST /v1/allocations", "a"},
		"other key":   {"org_1", "POST /v1/reservations", "b"},
	} {
		w.readSnapshot(func(r ledger.Reader) error {
			_, ok, err := r.Replay(ask[0], ask[1], ask[2])
			require.False(w, ok, name)
			return err
		})
	}
	w.mustSave(ledger.Change{Replays: []ledger.Replay{newReplay("org_2", "a")}})
}
