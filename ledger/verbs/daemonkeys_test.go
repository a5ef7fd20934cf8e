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

// Whoever comes with a key that is not known, or not any more, is told to wait while a pool waits for an operator's
// word: after a restore, the daemons' keys may be newer than the database.
func TestAnUnknownKeyWaitsForTheEndOfARecovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(1)
	l := w.lookAt(w.readNodes(node.Ready)[0].ID)
	ask := func(id string) error {
		_, err := w.ledger.AuthenticateNode(t.Context(), id)
		return err
	}
	require.ErrorIs(t, ask("newer"), ledger.ErrNotFound)
	_, err := w.ledger.BeginRecovery(t.Context(), operator, "", "restored")
	require.NoError(t, err)
	require.ErrorIs(t, ask("newer"), ledger.ErrRecovering)
	require.NoError(t, ask(l.daemon.KeyID))
	w.clock.Advance(ledger.NodeKeyLife + time.Hour)
	require.ErrorIs(t, ask(l.daemon.KeyID), ledger.ErrRecovering)
}

// With a key that was replaced nobody ends a job, proves that GPUs are clean, is told what to start, or stores output,
// although a server may remember it.
func TestAReplacedKeySettlesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.run(w.newSubmitter("ann"), jobOf(1, nil))
	old := r.daemons[0]
	_, err := w.ledger.IssueJoinToken(w.Context(), operator, old.NodeID, ledger.NewSecret{ID: "token", Hash: []byte{1}},
		time.Minute)
	require.NoError(t, err)
	_, err = w.ledger.JoinNode(w.Context(), ledger.Actor{KeyID: "token", Kind: ledger.JoinToken, NodeID: old.NodeID},
		ledger.Joining{BootID: "boot", Key: ledger.NewSecret{ID: "new key", Hash: []byte{2}}})
	require.NoError(t, err)

	ended := ledger.JobReport{JobID: r.ID, Attempt: 1, Ended: true}
	for name, said := range map[string]ledger.NodeReport{"nothing": {}, "an end": {Jobs: []ledger.JobReport{ended}},
		"a proof": {Cleaned: []ledger.Cleaned{{AllocationID: r.orders[0].Allocation.ID}}}} {
		_, err := w.ledger.SettleNode(w.Context(), old, said)
		require.ErrorIs(t, err, ledger.ErrDenied, name)
	}
	_, err = w.ledger.StoreOutput(w.Context(), old, ledger.JobOutput{JobID: r.ID, Attempt: 1, End: 1,
		Pieces: []ledger.JobPiece{{Stream: "stdout", Data: []byte("x")}}})
	require.ErrorIs(t, err, ledger.ErrDenied)
	require.Equal(t, r.State(), w.readJob(r.ID).State())

	still, err := ledger.IsStillJoined(w.Context(), w.ledger.Store(), old.NodeID, w.clock.Now().Add(-time.Minute))
	require.NoError(t, err)
	require.False(t, still, "its stream ends")
	current := old
	current.KeyID = "new key"
	known, err := ledger.CheckDaemon(w.Context(), w.ledger.Store(), current)
	require.NoError(t, err)
	still, err = ledger.IsStillJoined(w.Context(), w.ledger.Store(), old.NodeID, known.Daemon.JoinedAt)
	require.NoError(t, err)
	require.True(t, still)
	_, err = ledger.CheckDaemon(w.Context(), w.ledger.Store(), old)
	require.ErrorIs(t, err, ledger.ErrDenied)
}
