package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// Who is refused because of a pause is told whose it is, until when, and why.
func TestARefusalSaysWhatIsPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	admin := ann
	admin.Role = ledger.Admin
	until := w.clock.Now().Add(2 * time.Hour)
	refused := func() admission.Reason {
		_, err := w.ledger.Reserve(t.Context(), ann,
			ledger.ReserveRequest{Pool: "lab", GPUs: 1, Window: w.windowAfter(time.Hour, 3*time.Hour),
				Class: reservation.Speculative, Probability: 0.5})
		require.Equal(t, []admission.Code{admission.PrewarmPaused}, itemErrors(t, err))
		var found *ledger.RefusedError
		require.ErrorAs(t, err, &found)
		return found.Decision.Reasons[0]
	}
	_, err := w.ledger.PausePrewarming(t.Context(), operatorIn(t, w), "", "maintenance", time.Time{})
	require.NoError(t, err)
	require.Equal(t, "speculative pre-warming is paused for everybody until somebody resumes it: maintenance",
		refused().Message)
	_, err = w.ledger.PausePrewarming(t.Context(), admin, ann.OrganizationID, "budget review", until)
	require.NoError(t, err)
	require.Equal(t, "speculative pre-warming is paused for your organization until "+until.Format(time.RFC3339)+
		": budget review", refused().Message)
	require.Equal(t, until, refused().ClearsAt)
}

func operatorIn(t *testing.T, w *world) ledger.Actor {
	t.Helper()
	by := w.newPerson("operators")
	by.Role = ledger.Operator
	return by
}
