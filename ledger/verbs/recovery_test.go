package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
)

// A check that was first does not silence an operator: both reasons are kept, each once, and in the journal.
func TestAnOperatorsReasonIsKeptBesideThatOfACheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	check, person := ledger.SystemActor("reconcile"), ledger.Actor{KeyID: "key_ann", Role: ledger.Operator}
	begin := func(actor ledger.Actor, reason string) int {
		changed, err := w.ledger.BeginRecovery(t.Context(), actor, "", reason)
		require.NoError(t, err)
		return changed
	}
	shown := func() (reason string) {
		w.read(func(r ledger.Reader) error {
			pools, err := r.Pools(ledger.Page{})
			reason = pools[0].Recovery.Reason
			return err
		})
		return reason
	}
	require.Equal(t, 1, begin(check, "the journal is shorter"))
	require.Equal(t, 1, begin(person, "restored; the backup of 06:00"))
	require.Zero(t, begin(person, "restored; the backup of 06:00"), "sent again")
	require.Zero(t, begin(check, "a machine is unknown"), "each look would add one")
	require.Equal(t, "the journal is shorter; restored; the backup of 06:00", shown())
	events := w.readEvents("pool.recovering")
	require.Len(t, events, 2)
	require.Contains(t, events[0].Message+events[1].Message, "the backup of 06:00")
}
