package ledger

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Once names a request that must have one effect however often it is sent.
type Once struct {
	Route string // method and path template
	Key   string // the client's idempotency key
	Hash  []byte // of the request's body
	// LockHint is what the request will lock, if its caller can tell: then it shares a
	// transaction with others.
	LockHint *LockHint
	// Load is how many requests it decides on; zero is one. One that decides on very
	// many holds up nobody who does not need what it locks.
	Load int
}

// ReplayKey names the stored answer to the actor's request: that of a person, with whichever of their keys they ask, or
// of a key that is nobody's. Another member's answer shows what is theirs.
func (o Once) ReplayKey(actor Actor) ReplayKey {
	owner := actor.KeyID
	if actor.OrganizationID != "" && actor.UserID != "" {
		owner = actor.UserID
	}
	return ReplayKey{Owner: owner, Route: o.Route, Key: o.Key}
}

// OldReplayKey names the answer to the same request where that was stored when answers were an organization's.
func (o Once) OldReplayKey(actor Actor) ReplayKey {
	return ReplayKey{Owner: actor.OrganizationID, Route: o.Route, Key: o.Key}
}

// ReplayOf looks for the answer, and returns an empty one to fill if there is none.
func (o Once) ReplayOf(key ReplayKey, look func(ReplayKey) (Replay, bool, error)) (Replay, bool, error) {
	stored, found, err := look(key)
	switch {
	case err != nil:
		return Replay{}, false, fmt.Errorf("looking up the idempotency key: %w", err)
	case !found:
		return Replay{Owner: key.Owner, Route: o.Route, Key: o.Key, Hash: o.Hash}, false, nil
	case !bytes.Equal(stored.Hash, o.Hash):
		return Replay{}, false, ErrKeyReused
	default:
		return stored, true, nil
	}
}

// Replay is the stored answer to a request with an idempotency key.
type Replay struct {
	Owner     string // see Once.ReplayKey
	Route     string
	Key       string
	Hash      []byte // of the request's body
	Status    int
	Body      []byte
	CreatedAt time.Time
}

// LockHint names what a verb will lock, as far as its caller can tell, so that it can
// share a transaction with others. A wrong or missing name costs time, nothing
// else.
type LockHint struct {
	Pool        string // id or name
	Reservation string
	Allocation  string
	Node        string
	// Alone asks for a transaction of its own all the same: it has much to do.
	Alone bool
}

// KeepAnswers is how long the answer to a request with an idempotency key is
// kept. Sent again later, it would be done again.
const KeepAnswers = 7 * 24 * time.Hour

// IsLapsed reports whether the key says itself that it was made before the oldest
// answer that is kept: nobody can tell any more whether it came before.
func (o Once) IsLapsed(now time.Time) bool {
	made, ok := keyDate(o.Key)
	return ok && made.Before(now.Add(-KeepAnswers))
}

// keyDate reads when a key was made, if it is a UUID of version 7 (RFC 9562) or
// a ULID. Both begin with 48 bits of milliseconds. What would be of before there
// were ULIDs is some other text.
func keyDate(key string) (time.Time, bool) {
	millis, ok := uuidMillis(key)
	if !ok {
		millis, ok = ulidMillis(key)
	}
	made := time.UnixMilli(millis)
	return made, ok && made.Year() >= firstULID
}

const firstULID = 2016

func uuidMillis(key string) (int64, bool) {
	if len(key) != 36 || key[8] != '-' || key[13] != '-' || key[18] != '-' || key[23] != '-' {
		return 0, false
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(key, "-", ""))
	if err != nil || len(raw) != 16 || raw[6]>>4 != 7 || raw[8]>>6 != 2 {
		return 0, false
	}
	millis := int64(0)
	for _, b := range raw[:6] {
		millis = millis<<8 | int64(b)
	}
	return millis, true
}

// crockford are the digits of a ULID.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func ulidMillis(key string) (int64, bool) {
	if len(key) != 26 || key[0] > '7' {
		return 0, false
	}
	millis := int64(0)
	for i, c := range strings.ToUpper(key) {
		digit := strings.IndexRune(crockford, c)
		if digit < 0 {
			return 0, false
		}
		if i < 10 {
			millis = millis<<5 | int64(digit)
		}
	}
	return millis, true
}
