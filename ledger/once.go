package ledger

import (
	"bytes"
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

// ReplayKey names the stored answer to the actor's request.
func (o Once) ReplayKey(actor Actor) ReplayKey {
	owner := actor.OrganizationID
	if owner == "" {
		owner = actor.KeyID
	}
	return ReplayKey{OrganizationID: owner, Route: o.Route, Key: o.Key}
}

// ReplayOf looks for the answer, and returns an empty one to fill if there is none.
func (o Once) ReplayOf(key ReplayKey, look func(ReplayKey) (Replay, bool, error)) (Replay, bool, error) {
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
