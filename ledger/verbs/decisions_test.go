package verbs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// readDecisions reads every decision that was left, newest first.
func (w *world) readDecisions(f ledger.DecisionFilter) (all []ledger.Event) {
	w.Helper()
	w.read(func(r ledger.Reader) error {
		for {
			page, err := r.Decisions(ledger.Scope{All: true}, f, 500)
			if err != nil || len(page) == 0 {
				return err
			}
			all = append(all, page...)
			f.Before = page[len(page)-1].Seq
		}
	})
	return all
}

// replayDecision computes a stored decision again and returns what differs.
func replayDecision(t require.TestingT, e ledger.Event) string {
	d, err := ledger.ReadDecision(e.Decision)
	require.NoError(t, err, "%s", e.Decision)
	require.NotNil(t, d.Record, "%s of %s has no record", e.Type, e.Subject)
	require.True(t, bytes.HasPrefix(e.Decision, []byte(ledger.DecisionPrefix(d.Kind))))
	if d.Engine == ledger.PlanEngine {
		r, err := plan.DecodeRecord(d.Record)
		require.NoError(t, err)
		text, err := r.Encode()
		require.NoError(t, err)
		require.Equal(t, string(d.Record), string(text), "a record is stored in its canonical form")
		_, diff := plan.Replay(r)
		return diff
	}
	r, err := admission.DecodeRecord(d.Record)
	require.NoError(t, err, "%s", d.Record)
	text, err := r.Encode()
	require.NoError(t, err)
	require.Equal(t, string(d.Record), string(text), "a record is stored in its canonical form")
	_, diff := admission.Replay(r)
	return diff
}

// Whatever happens, each decision can be computed again from what it left, and a
// record that was changed cannot.
func TestEveryDecisionCanBeComputedAgain(t *testing.T) {
	t.Parallel()
	seen := map[ledger.DecisionKind]int{}
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		ours, theirs := w.newPerson("ours"), w.newPerson("theirs")
		for range rapid.IntRange(2, 6).Draw(r, "steps") {
			by := rapid.SampledFrom([]ledger.Actor{ours, theirs, agentBeside(ours, "forecaster")}).Draw(r, "actor")
			_, _, _ = w.drawOperation(r, by)(w.Context(), w.ledger) // a refusal is a decision, too
			w.pass(time.Duration(rapid.IntRange(0, 90).Draw(r, "minutes")) * time.Minute)
		}
		for _, e := range w.readDecisions(ledger.DecisionFilter{}) {
			require.Empty(t, replayDecision(t, e), "%s of %s: %s", e.Type, e.Subject, e.Decision)
			d, err := ledger.ReadDecision(e.Decision)
			require.NoError(t, err)
			seen[d.Kind]++
		}
	})
	for _, kind := range []ledger.DecisionKind{ledger.DecisionAdmission, ledger.DecisionRefusal,
		ledger.DecisionPrewarm, ledger.DecisionReclaim, ledger.DecisionPlacement} {
		require.True(t, seen[kind] > 0 || !thorough, "no history had a %s", kind)
	}
}

// Places on the waitlist, promotions and displacements are rarer: this history has
// them.
func TestWhoGaveWayAndWhoCameInstead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ours, theirs := w.newPerson("ours"), w.newPerson("theirs")
	forecaster := agentBeside(ours, "forecaster")
	_, err := w.ledger.SetDemand(w.Context(), forecaster, ledger.Demand{Pool: "lab", Windows: []ledger.DemandWindow{
		{Start: w.clock.Now().Add(time.Hour), End: w.clock.Now().Add(2 * time.Hour), GPUs: 8, Probability: 0.5}}})
	require.NoError(t, err)
	taken := w.mustReserve(theirs, 8, w.windowAfter(time.Hour, 2*time.Hour))
	gone := w.readDecisions(ledger.DecisionFilter{Kind: ledger.DecisionDisplacement})
	require.Len(t, gone, 4)
	for _, e := range gone {
		require.Equal(t, ours.OrganizationID, e.OrganizationID)
		require.Equal(t, "displaced", e.Reason)
		require.Empty(t, replayDecision(t, e))
	}
	waits, err := w.ledger.Reserve(w.Context(), ours,
		ledger.ReserveRequest{Pool: "lab", GPUs: 2, Window: w.windowAfter(time.Hour, 2*time.Hour), Queue: true})
	require.NoError(t, err)
	require.Equal(t, reservation.Waitlisted, waits.State())
	require.Len(t, w.readDecisions(ledger.DecisionFilter{Kind: ledger.DecisionWaitlist, Subject: waits.ID}), 1)
	_, err = w.ledger.CancelReservation(w.Context(), theirs, taken.ID)
	require.NoError(t, err)
	w.doDueWork()
	promoted := w.readDecisions(ledger.DecisionFilter{Kind: ledger.DecisionPromotion, Subject: waits.ID})
	require.Len(t, promoted, 1)
	require.Empty(t, replayDecision(t, promoted[0]))
	for _, e := range w.readDecisions(ledger.DecisionFilter{}) {
		require.Empty(t, replayDecision(t, e), "%s: %s", e.Type, e.Decision)
	}
}

// A refusal changes nothing but the journal, and is told by its own id; what was
// only tried in a dry run leaves nothing.
func TestARefusalIsJournaled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := w.newPerson("acme")
	before := w.readRows()
	op := func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
		return answerWith(l.Allocate(ctx, by, ledger.AllocateRequest{Pool: "lab", GPUs: 50}))
	}
	_, err := w.makePlan(by, op)
	require.ErrorAs(t, err, new(*ledger.RefusedError))
	require.Equal(t, before, w.readRows(), "a plan left a refusal")
	_, _, err = op(w.Context(), w.ledger)
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	left := w.readDecisions(ledger.DecisionFilter{Kind: ledger.DecisionRefusal})
	require.Len(t, left, 1)
	require.Equal(t, refused.DecisionID, left[0].Subject)
	require.Equal(t, "allocation.refused", left[0].Type)
	require.Empty(t, replayDecision(t, left[0]))
	after := w.readRows()
	require.Equal(t, before.Events+1, after.Events)
	after.Events--
	require.Equal(t, before, after)
}

// A record that somebody changed gives another result when recomputed.
func TestATamperedRecordDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	by := w.newPerson("acme")
	w.mustAllocate(by, 2)
	w.pass(2 * time.Hour)
	changed := 0
	for _, e := range w.readDecisions(ledger.DecisionFilter{}) {
		d, err := ledger.ReadDecision(e.Decision)
		require.NoError(t, err)
		if d.Engine != ledger.PlanEngine {
			continue
		}
		r, err := plan.DecodeRecord(d.Record)
		require.NoError(t, err)
		r.Outcome.Reason += "!"
		d.Record, err = r.Encode()
		require.NoError(t, err)
		e.Decision, err = json.Marshal(d)
		require.NoError(t, err)
		require.NotEmpty(t, replayDecision(t, e))
		changed++
	}
	require.Positive(t, changed)
}
