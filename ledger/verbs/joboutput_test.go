package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
)

func TestOutputIsKeptOnceAndInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.warmNodes(2)
	j := w.submit(w.newSubmitter("ann"), jobOf(1, nil))
	w.doDueWork()
	all := w.joinedDaemons()
	require.Len(t, all, 2)
	for i, daemon := range all {
		if len(w.orders(daemon)) == 0 {
			continue
		}
		store := func(offset int64, text string) int64 {
			next, err := w.ledger.StoreOutput(t.Context(), daemon, ledger.JobOutput{JobID: j.ID, Attempt: 1, Start: offset,
				End: offset + int64(len(text)), Pieces: []ledger.JobPiece{{Stream: "stdout", Data: []byte(text)}}})
			require.NoError(t, err)
			return next
		}
		require.EqualValues(t, 5, store(0, "hello"))
		require.EqualValues(t, 5, store(0, "hello"), "sent again")
		require.EqualValues(t, 11, store(3, "lo world"), "a part of it is there")
		require.EqualValues(t, 14, store(11, "...")) //nolint:testifylint // an offset
		other := all[1-i]
		_, err := w.ledger.StoreOutput(t.Context(), other, ledger.JobOutput{JobID: j.ID, Attempt: 1, End: 1,
			Pieces: []ledger.JobPiece{{Stream: "stdout", Data: []byte("x")}}})
		require.ErrorIs(t, err, ledger.ErrNotFound, "a daemon of another node")
	}
	require.Equal(t, "hello world...", w.readOutput(j.ID, 1))
}

func (w *world) readOutput(jobID string, attempt int) (text string) {
	w.Helper()
	require.NoError(w, w.store.Read(w.Context(), func(r ledger.Reader) error {
		parts, err := r.JobOutput(jobID, attempt, 0, 0, 1000)
		for _, p := range parts {
			for _, piece := range p.Pieces {
				text += string(piece.Data)
			}
		}
		return err
	}))
	return text
}

// Of very much output the beginning and the end are kept.
func TestTheMiddleOfVeryMuchOutputIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.submit(w.newSubmitter("ann"), jobOf(1, nil))
	w.pass(boot)
	const part = 64 << 10
	at := int64(0)
	for _, daemon := range w.daemons() {
		w.orders(daemon)
		for at < ledger.OutputHead+ledger.OutputTail+10*part {
			next, err := w.ledger.StoreOutput(t.Context(), daemon, ledger.JobOutput{JobID: j.ID, Attempt: 1, Start: at,
				End: at + part, Pieces: []ledger.JobPiece{{Stream: "stdout", Data: make([]byte, part)}}})
			require.NoError(t, err)
			at = next
		}
	}
	kept := int64(len(w.readOutput(j.ID, 1)))
	require.LessOrEqual(t, kept, int64(ledger.OutputHead+ledger.OutputTail+part))
	require.GreaterOrEqual(t, kept, int64(ledger.OutputHead+ledger.OutputTail))
}

// What explain says of a job that waits names everything that stands in its way.
func TestExplainingAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newSubmitter("ann")
	explain := func(id string) ledger.Explanation {
		e, err := w.ledger.ExplainJob(t.Context(), ann, id)
		require.NoError(t, err)
		return e
	}
	codes := func(e ledger.Explanation) (all []string) {
		for _, b := range e.Blockers {
			all = append(all, b.Code)
		}
		return all
	}
	first := w.submit(ann, jobOf(8, nil))
	require.Equal(t, "start", explain(first.ID).Next[0].Code, "there are GPUs for it")
	require.Equal(t, job.Pending, w.readJob(first.ID).State(), "asking changes nothing")
	w.doDueWork()
	require.Contains(t, explain(first.ID).Summary, "has its place")
	second, third := w.submit(ann, jobOf(8, nil)), w.submit(ann, jobOf(8, nil))
	held := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) { c.Held = true }))
	later := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) { c.Job.NotBefore = w.clock.Now().Add(time.Hour) }))
	after := w.submit(ann, jobOf(1, func(c *ledger.JobCommand) {
		c.Job.Dependencies = []job.Depends{{JobID: first.ID, Condition: job.AfterOK}}
	}))
	require.NotNil(t, explain(second.ID).Refused)
	require.Empty(t, codes(explain(second.ID)))
	require.Equal(t, []string{"queue"}, codes(explain(third.ID)))
	require.Equal(t, []string{"held"}, codes(explain(held.ID)))
	require.Equal(t, []string{ledger.WaitsForTime}, codes(explain(later.ID)))
	require.Equal(t, []string{ledger.WaitsForJob}, codes(explain(after.ID)))
	_, err := w.ledger.ExplainJob(t.Context(), w.newSubmitter("bob"), first.ID)
	require.ErrorIs(t, err, ledger.ErrNotFound)
	_, err = w.ledger.DeleteOrganization(t.Context(), operator, ann.OrganizationID)
	require.Equal(t, 6, inUse(t, err)["jobs"])
}
