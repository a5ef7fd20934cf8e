package txn

import (
	"context"
	"errors"

	"github.com/forewarm/forewarm/ledger"
)

// BoundOperation is a request as code: it calls verbs on the engine that it is
// given, which works in one transaction, and returns what the request answers.
type BoundOperation func(ctx context.Context, e *Engine) (status int, answer []byte, err error)

// Once runs fn and stores its answer in fn's own transaction. The same request again gets the stored
// answer, for as long as KeepAnswers; the same key with another body is
// ErrKeyReused, and a key that says itself that it is older than any answer is
// ErrKeyExpired. When fn fails nothing
// is stored, since nothing happened: the repeat is decided afresh.
//
// Of two at the same time one takes effect, and the other gets its answer.
func (l *Engine) Once(ctx context.Context, actor ledger.Actor, o ledger.Once,
	fn BoundOperation,
) (status int, body []byte, replayed bool, err error) {
	key := o.ReplayKey(actor)
	r, replayed, err := l.oldAnswers.find(ctx, l, o, o.OldReplayKey(actor))
	if err != nil || replayed {
		return r.Status, r.Body, replayed, err
	}
	err = SubmitTx(l, &PendingTx{Ctx: ctx, hint: o.LockHint, load: o.Load, org: actor.OrganizationID, key: &key,
		Run: func(ctx context.Context, tx *Tx) error {
			var err error
			if r, replayed, err = o.ReplayOf(key, tx.storedAnswer); err != nil || replayed {
				return err
			}
			if o.IsLapsed(tx.Now()) {
				return ledger.ErrKeyExpired
			}
			if r.Status, r.Body, err = fn(ctx, tx.BoundEngine()); err != nil {
				return err
			}
			r.CreatedAt = tx.Now()
			tx.Change.Replays = append(tx.Change.Replays, r)
			return nil
		}})
	if err == nil {
		return r.Status, r.Body, replayed, nil
	}
	return answerOfTwin(ctx, l, o, key, err)
}

// storedAnswer looks for a stored answer among those that were read when the group was
// opened. One that another of the group is about to store comes with the next.
func (tx *Tx) storedAnswer(key ledger.ReplayKey) (ledger.Replay, bool, error) {
	for _, r := range tx.Change.Replays {
		if (ledger.ReplayKey{Owner: r.Owner, Route: r.Route, Key: r.Key}) == key {
			tx.writeConflict = true
		}
	}
	if tx.replays == nil {
		return tx.Port.Replay(key.Owner, key.Route, key.Key)
	}
	r, ok := tx.replays[key]
	return r, ok, nil
}

// answerOfTwin looks whether a request failed only because its twin came first, in
// another process: it took the key, or what fn wanted to take.
func answerOfTwin(ctx context.Context, l *Engine, o ledger.Once, key ledger.ReplayKey,
	failed error) (status int, body []byte, replayed bool, err error) {
	if errors.Is(failed, ledger.ErrKeyReused) {
		return 0, nil, false, failed
	}
	var r ledger.Replay
	err = l.Store.Read(ctx, func(rd ledger.Reader) error {
		var err error
		r, replayed, err = o.ReplayOf(key, func(k ledger.ReplayKey) (ledger.Replay, bool, error) {
			return rd.Replay(k.Owner, k.Route, k.Key)
		})
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrKeyReused):
		return 0, nil, false, err
	case err == nil && replayed:
		return r.Status, r.Body, true, nil
	default:
		return 0, nil, false, failed
	}
}
