package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

// A report is judged by the keys that its daemon has by then, whatever a server remembers: the key before, once another
// one works, for two minutes, and any for a day.
func TestAReportIsJudgedByTheKeysOfItsDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	l := w.lookAt(w.readNodes(node.Ready)[0].ID)
	report := func(keyID string) error {
		daemon := l.daemon
		daemon.KeyID = keyID
		_, err := w.ledger.RecordBeat(w.Context(), daemon, ledger.Beat{BootID: "boot", Epoch: 1, Look: []byte("{}")})
		return err
	}
	first := l.daemon.KeyID
	renewed, err := w.ledger.RenewNodeKey(w.Context(), l.daemon, ledger.Joining{BootID: "boot",
		Key: ledger.NewSecret{ID: "second", Hash: []byte{2}}})
	require.NoError(t, err)
	require.NoError(t, report(first))
	require.NoError(t, report("second"))
	require.ErrorIs(t, report("third"), ledger.ErrDenied)
	w.clock.Set(renewed.OldKeyUntil)
	require.ErrorIs(t, report(first), ledger.ErrDenied)
	w.clock.Set(renewed.KeyExpires.Add(-time.Second))
	require.NoError(t, report("second"))
	w.clock.Set(renewed.KeyExpires)
	require.ErrorIs(t, report("second"), ledger.ErrDenied)
}
