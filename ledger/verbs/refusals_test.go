package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// askTooMuch are n requests that a quota of 4 GPUs refuses.
func askTooMuch(n int) []ledger.BatchItem {
	batch := make([]ledger.BatchItem, n)
	for i := range batch {
		batch[i].Request = ledger.ReserveRequest{Pool: "lab", GPUs: 5, Window: dayWindow(7)}
	}
	return batch
}

func TestRefusalsOfABatchAreCountedNotListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newLimitedPerson("ann", quota.Limits{GPUs: 4})
	outcomes, err := w.ledger.ReserveMany(t.Context(), ann, askTooMuch(500))
	require.NoError(t, err)
	require.Len(t, outcomes, 500)
	for _, o := range outcomes {
		require.Equal(t, []admission.Code{admission.QuotaExceeded}, itemErrors(t, o.Err),
			"each answer keeps its blockers")
	}
	require.Len(t, w.readEvents("reservation.refused"), 10)
	told := w.readEvents("requests.refused")
	require.Len(t, told, 1)
	require.Contains(t, told[0].Message, "490 for quota_exceeded")
	require.Equal(t, ann.OrganizationID, told[0].OrganizationID, "its own journal tells of it")
	require.Equal(t, ann.KeyID, told[0].Actor)
}

func TestRefusalsOfAKeyAreListedUpToANumberAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newLimitedPerson("ann", quota.Limits{GPUs: 4}), w.newLimitedPerson("bob", quota.Limits{GPUs: 4})
	ask := func(by ledger.Actor) *ledger.RefusedError {
		var refused *ledger.RefusedError
		_, err := w.ledger.Reserve(t.Context(), by, askTooMuch(1)[0].Request)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, admission.QuotaExceeded, refused.Decision.Reasons[0].Code)
		require.NotEmpty(t, refused.Decision.Offers, "the answer stays whole")
		return refused
	}
	for i := range 130 {
		require.Equal(t, i < 100, ask(ann).DecisionID != "", "an id is of what the journal has: %d", i)
	}
	require.NotEmpty(t, ask(bob).DecisionID, "another key has its own number")
	require.Len(t, w.readEvents("reservation.refused"), 101)
	require.Empty(t, w.readEvents("requests.refused"))

	w.clock.Set(w.clock.Now().Add(time.Minute))
	require.NotEmpty(t, ask(ann).DecisionID)
	told := w.readEvents("requests.refused")
	require.Len(t, told, 1, "whoever commits next tells of it")
	require.Contains(t, told[0].Message, "30 for quota_exceeded")
	w.mustReserve(ann, 1, dayWindow(8))
	require.Len(t, w.readEvents("requests.refused"), 1, "once")
}

func TestWhatLargeBatchesWereRefusedIsToldByWhoeverCommitsNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newLimitedPerson("ann", quota.Limits{GPUs: 4})
	for range 20 {
		_, err := w.ledger.ReserveMany(t.Context(), ann, askTooMuch(250))
		require.NoError(t, err)
	}
	require.Len(t, w.readEvents("reservation.refused"), 100, "large batches and others have one number")
	told := len(w.readEvents("requests.refused"))

	w.clock.Set(w.clock.Now().Add(time.Minute))
	w.mustReserve(ann, 1, dayWindow(8))
	events := w.readEvents("requests.refused")
	require.Len(t, events, told+1)
	require.Regexp(t, `[0-9]+ for quota_exceeded`, events[len(events)-1].Message)
}

func TestABatchThatTakesTooLongSaysWhatWasNotTried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hurried := verbs.New(w.store, &ids.UUID{}, ledger.Config{BatchTime: time.Nanosecond})
	outcomes, err := hurried.ReserveMany(t.Context(), w.newPerson("ann"), hourlyBatch(5))
	require.NoError(t, err)
	require.NoError(t, outcomes[0].Err, "there is always some progress")
	for _, o := range outcomes[1:] {
		require.ErrorIs(t, o.Err, ledger.ErrNotTried)
	}
	require.Equal(t, 1, w.countBooked())
}
