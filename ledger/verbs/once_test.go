package verbs_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// allocateOnce sends a request that takes two GPUs.
func (w *world) allocateOnce(by ledger.Actor, key, body string) (string, bool, error) {
	status, answer, replayed, err := w.ledger.Once(w.Context(), by,
		ledger.Once{Route: "POST /v1/allocations", Key: key, Hash: []byte(body)},
		func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
			a, err := l.Allocate(ctx, by, ledger.AllocateRequest{Pool: "lab", GPUs: 2})
			return 202, []byte(a.ID), err
		})
	if err == nil && status != 202 {
		err = errors.New("the status was lost")
	}
	return string(answer), replayed, err
}

func (w *world) heldAllocations() (ids []string) {
	w.Helper()
	w.read(func(r ledger.Reader) error {
		list, err := r.Allocations(ledger.Scope{All: true}, ledger.BookingFilter{Live: true}, ledger.Page{Limit: 500})
		for _, a := range list {
			ids = append(ids, a.ID)
		}
		return err
	})
	return ids
}

func TestARequestSentAgainGetsItsAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.newPerson("ann"), w.newPerson("bob")
	first, replayed, err := w.allocateOnce(ann, "k", "body")
	require.NoError(t, err)
	require.False(t, replayed)

	again, replayed, err := w.allocateOnce(ann, "k", "body")
	require.NoError(t, err)
	require.True(t, replayed)
	require.Equal(t, first, again)
	require.Equal(t, []string{first}, w.heldAllocations(), "and no second effect")

	_, _, err = w.allocateOnce(ann, "k", "another body")
	require.ErrorIs(t, err, ledger.ErrKeyReused)

	_, replayed, err = w.allocateOnce(bob, "k", "another body")
	require.NoError(t, err)
	require.False(t, replayed, "keys of other organizations are other keys")
	require.Len(t, w.heldAllocations(), 2)
}

// Two members of one organization may send the same under the same key: what the one is answered is not the other's
// business. A person's keys are all theirs.
func TestAnAnswerIsItsAskers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	ann.UserID = "usr_ann"
	bob, agent, other := ann, ann, ann
	bob.KeyID, bob.UserID = "key_bob", "usr_bob"
	agent.KeyID, agent.UserID = "key_agent", ""
	other.KeyID = "key_other"
	first, _, err := w.allocateOnce(ann, "k", "body")
	require.NoError(t, err)
	for name, who := range map[string]ledger.Actor{"another person": bob, "a key that is nobody's": agent} {
		own, replayed, err := w.allocateOnce(who, "k", "body")
		require.NoError(t, err, name)
		require.False(t, replayed, name)
		require.NotEqual(t, first, own, name)
	}
	again, replayed, err := w.allocateOnce(other, "k", "body")
	require.NoError(t, err)
	require.True(t, replayed, "another key of the same person")
	require.Equal(t, first, again)
}

// A request that was answered when answers were an organization's is not done again.
func TestARequestIsRepeatedAcrossTheUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	require.NoError(t, w.store.InTx(t.Context(), func(tx ledger.Tx) error {
		return tx.Save(ledger.Change{Replays: []ledger.Replay{{Owner: ann.OrganizationID, Route: "POST /v1/allocations",
			Key: "old", Hash: []byte("body"), Status: 202, Body: []byte("alc_old"), CreatedAt: w.clock.Now()}}})
	}))
	got, replayed, err := w.allocateOnce(ann, "old", "body")
	require.NoError(t, err)
	require.True(t, replayed)
	require.Equal(t, "alc_old", got)
	_, _, err = w.allocateOnce(ann, "old", "another body")
	require.ErrorIs(t, err, ledger.ErrKeyReused)
	_, replayed, err = w.allocateOnce(ann, "new", "body")
	require.NoError(t, err)
	require.False(t, replayed)
	require.Len(t, w.heldAllocations(), 1)
}

func TestAFailureIsNotRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	full := w.mustAllocate(w.newPerson("bob"), 8)
	_, _, err := w.allocateOnce(ann, "k", "body")
	var refused *ledger.RefusedError
	require.ErrorAs(t, err, &refused)
	_, err = w.ledger.Release(t.Context(), operator, full.ID)
	require.NoError(t, err)
	id, replayed, err := w.allocateOnce(ann, "k", "body")
	require.NoError(t, err, "the repeat is decided afresh")
	require.False(t, replayed)
	require.Equal(t, []string{id}, w.heldAllocations())
}

func TestAnAnswerThatCannotBeStoredUndoesItsEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	broken := errors.New("encoding failed")
	_, _, _, err := w.ledger.Once(t.Context(), ann, ledger.Once{Route: "r", Key: "k"},
		func(ctx context.Context, l *verbs.Ledger) (int, []byte, error) {
			_, err := l.Allocate(ctx, ann, ledger.AllocateRequest{Pool: "lab", GPUs: 2})
			require.NoError(t, err)
			return 0, nil, broken
		})
	require.ErrorIs(t, err, broken)
	require.Empty(t, w.heldAllocations())
}

func TestManyTwinsHaveOneEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.newPerson("ann")
	answers, errs := make([]string, 8), make([]error, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i], _, errs[i] = w.allocateOnce(ann, "k", "body") })
	}
	all.Wait()
	held := w.heldAllocations()
	require.Len(t, held, 1)
	for i := range answers {
		require.NoError(t, errs[i])
		require.Equal(t, held[0], answers[i])
	}
}
