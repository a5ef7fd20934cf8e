package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Once names a request that must have one effect however often it is sent.
type Once struct {
	Route string // method and path template
	Key   string // the client's idempotency key
	Hash  []byte // of the request's body
	// LockHint is what the request will lock, if its caller can tell: then it shares a
	// transaction with others.
	LockHint *LockHint
	// Load is how many requests it decides on; zero is one. Those who decide on few
	// go before those who decide on very many.
	Load int
}

// Once runs fn and stores its answer in fn's own transaction. The same request again gets the stored
// answer, for as long as KeepAnswers; the same key with another body is
// ErrKeyReused, and a key that says itself that it is older than any answer is
// ErrKeyExpired. When fn fails nothing
// is stored, since nothing happened: the repeat is decided afresh.
//
// Of two at the same time one takes effect, and the other gets its answer.
func (l *engine) Once(ctx context.Context, actor Actor, o Once,
	fn Operation,
) (status int, body []byte, replayed bool, err error) {
	key := o.replayKey(actor)
	var r Replay
	err = submitTx(l, &pendingTx{ctx: ctx, hint: o.LockHint, load: o.Load, org: actor.OrganizationID, key: &key,
		fn: func(ctx context.Context, tx *groupTx) error {
			var err error
			if r, replayed, err = o.replayOf(key, tx.storedAnswer); err != nil || replayed {
				return err
			}
			if o.isLapsed(tx.now()) {
				return ErrKeyExpired
			}
			if r.Status, r.Body, err = fn(ctx, tx.boundLedger()); err != nil {
				return err
			}
			r.CreatedAt = tx.now()
			tx.change.Replays = append(tx.change.Replays, r)
			return nil
		}})
	if err == nil {
		return r.Status, r.Body, replayed, nil
	}
	return answerOfTwin(ctx, l, o, key, err)
}

// storedAnswer looks for a stored answer among those that were read when the group was
// opened. One that another of the group is about to store comes with the next.
func (tx *groupTx) storedAnswer(key ReplayKey) (Replay, bool, error) {
	for _, r := range tx.change.Replays {
		if (ReplayKey{r.OrganizationID, r.Route, r.Key}) == key {
			tx.writeConflict = true
		}
	}
	if tx.replays == nil {
		return tx.port.Replay(key.OrganizationID, key.Route, key.Key)
	}
	r, ok := tx.replays[key]
	return r, ok, nil
}

// answerOfTwin looks whether a request failed only because its twin came first, in
// another process: it took the key, or what fn wanted to take.
func answerOfTwin(ctx context.Context, l *engine, o Once, key ReplayKey,
	failed error) (status int, body []byte, replayed bool, err error) {
	if errors.Is(failed, ErrKeyReused) {
		return 0, nil, false, failed
	}
	var r Replay
	err = l.store.Read(ctx, func(rd Reader) error {
		var err error
		r, replayed, err = o.replayOf(key, func(k ReplayKey) (Replay, bool, error) {
			return rd.Replay(k.OrganizationID, k.Route, k.Key)
		})
		return err
	})
	switch {
	case errors.Is(err, ErrKeyReused):
		return 0, nil, false, err
	case err == nil && replayed:
		return r.Status, r.Body, true, nil
	default:
		return 0, nil, false, failed
	}
}

func (o Once) replayKey(actor Actor) ReplayKey {
	owner := actor.OrganizationID
	if owner == "" {
		owner = actor.KeyID
	}
	return ReplayKey{OrganizationID: owner, Route: o.Route, Key: o.Key}
}

// replayOf looks for the answer, and returns an empty one to fill if there is none.
func (o Once) replayOf(key ReplayKey, look func(ReplayKey) (Replay, bool, error)) (Replay, bool, error) {
	stored, found, err := look(key)
	switch {
	case err != nil:
		return Replay{}, false, fmt.Errorf("looking up the idempotency key: %w", err)
	case !found:
		return Replay{OrganizationID: key.OrganizationID, Route: o.Route, Key: o.Key, Hash: o.Hash}, false, nil
	case !bytes.Equal(stored.Hash, o.Hash):
		return Replay{}, false, ErrKeyReused
	default:
		return stored, true, nil
	}
}
