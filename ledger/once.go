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
}

// errTwin says that a request with the same idempotency key got there first.
var errTwin = errors.New("the idempotency key was stored meanwhile")

// Once runs fn and stores its answer in fn's own transaction: verbs that are
// called with fn's context join it. The same request again gets the stored
// answer; the same key with another body is ErrKeyReused. When fn fails nothing
// is stored, since nothing happened: the repeat is decided afresh.
//
// Of two at the same time one takes effect, and the other gets its answer;
// ErrInProgress means that the answer cannot be read yet.
func (l *Ledger) Once(ctx context.Context, actor Actor, o Once,
	fn func(ctx context.Context) (status int, body []byte, err error),
) (status int, body []byte, replayed bool, err error) {
	var r Replay
	err = l.store.InTx(ctx, func(ctx context.Context, tx Tx) error {
		var err error
		if r, replayed, err = o.stored(actor, tx); err != nil || replayed {
			return err
		}
		if r.Status, r.Body, err = fn(ctx); err != nil {
			return err
		}
		r.CreatedAt = tx.Now()
		if err = tx.Save(Change{Replays: []Replay{r}}); errors.Is(err, ErrTaken) {
			return errTwin
		}
		return err
	})
	if err == nil {
		return r.Status, r.Body, replayed, nil
	}
	return l.afterTwin(ctx, actor, o, err)
}

// afterTwin looks whether a request failed only because its twin came first: it
// took the key, or what fn wanted to take.
func (l *Ledger) afterTwin(ctx context.Context, actor Actor, o Once, failed error) (status int, body []byte, replayed bool, err error) {
	if errors.Is(failed, ErrKeyReused) {
		return 0, nil, false, failed
	}
	var r Replay
	err = l.store.Read(ctx, func(rd Reader) error {
		var err error
		r, replayed, err = o.stored(actor, rd)
		return err
	})
	switch {
	case errors.Is(err, ErrKeyReused):
		return 0, nil, false, err
	case err == nil && replayed:
		return r.Status, r.Body, true, nil
	case errors.Is(failed, errTwin):
		return 0, nil, false, ErrInProgress
	default:
		return 0, nil, false, failed
	}
}

// stored looks for the answer, and returns an empty one to fill if there is none.
func (o Once) stored(actor Actor, r Reader) (Replay, bool, error) {
	owner := actor.OrganizationID
	if owner == "" {
		owner = actor.KeyID
	}
	stored, found, err := r.Replay(owner, o.Route, o.Key)
	switch {
	case err != nil:
		return Replay{}, false, fmt.Errorf("looking up the idempotency key: %w", err)
	case !found:
		return Replay{OrganizationID: owner, Route: o.Route, Key: o.Key, Hash: o.Hash}, false, nil
	case !bytes.Equal(stored.Hash, o.Hash):
		return Replay{}, false, ErrKeyReused
	default:
		return stored, true, nil
	}
}
