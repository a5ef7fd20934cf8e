package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// serversAreListed: who has been there longest comes first, and who is silent is
// gone and begins anew.
func serversAreListed(w *world) {
	list, ok := w.store.(ledger.Peers)
	require.True(w, ok)
	attend := func(id, address string, life time.Duration) (all []string) {
		got, err := list.Attend(w.Context(), ledger.Peer{ID: id, Address: address}, life)
		require.NoError(w, err)
		for _, p := range got {
			require.False(w, p.Since.IsZero())
			all = append(all, p.ID+" "+p.Address)
		}
		return all
	}
	require.Equal(w, []string{"srv_b 10.0.0.1:1"}, attend("srv_b", "10.0.0.1:1", time.Hour))
	require.Equal(w, []string{"srv_b 10.0.0.1:1", "srv_c 10.0.0.3:1"}, attend("srv_c", "10.0.0.3:1", -time.Hour))
	require.Equal(w, []string{"srv_b 10.0.0.1:1", "srv_d 10.0.0.4:1"}, attend("srv_d", "10.0.0.4:1", time.Hour),
		"the one before is gone")
	require.Equal(w, []string{"srv_b 10.0.0.9:1", "srv_d 10.0.0.4:1"}, attend("srv_b", "10.0.0.9:1", time.Hour),
		"the newest address counts, and the place stays")
	there := readValue(w, func(r ledger.Reader) ([]ledger.Peer, error) { return r.Servers() })
	require.Len(w, there, 2, "to those who only look, too")
	require.Equal(w, "10.0.0.9:1", there[0].Address)
	_, err := list.Attend(w.Context(), ledger.Peer{ID: "srv_d", Address: "10.0.0.4:1"}, -time.Hour)
	require.NoError(w, err)
	require.Len(w, readValue(w, func(r ledger.Reader) ([]ledger.Peer, error) { return r.Servers() }), 1)
	attend("srv_d", "10.0.0.4:1", time.Hour)
	require.NoError(w, list.Leave(w.Context(), "srv_b"))
	require.NoError(w, list.Leave(w.Context(), "srv_b"), "twice does no harm")
	require.Equal(w, []string{"srv_d 10.0.0.4:1", "srv_e 10.0.0.5:1"}, attend("srv_e", "10.0.0.5:1", time.Hour))
}
