package api

import (
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger"
)

// tellEnds says of keys whether they work, and with what those have ended that do not.
func tellEnds(r ledger.Reader, all []contract.Key) error {
	known := keyEnds{r, map[string]string{}}
	for i := range all {
		k := &all[i]
		end, err := known.of(k.ID)
		if err != nil {
			return fmt.Errorf("reading what key %s rests on: %w", k.ID, err)
		}
		k.Works = end == ""
		if end != k.ID {
			k.EndedWith = end
		}
	}
	return nil
}

// keyEnds are the keys and users with which keys have ended; empty: they work.
type keyEnds struct {
	ledger.Reader
	known map[string]string
}

// of is the key or the user with which a key has ended, the nearest of those on which it rests.
func (e keyEnds) of(keyID string) (end string, err error) {
	if end, known := e.known[keyID]; known {
		return end, nil
	}
	e.known[keyID] = keyID // a circle, which the ledger never makes, ends here
	k, err := e.Key(ledger.Scope{All: true}, keyID)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return keyID, nil
	case err != nil:
		return "", err
	case !k.Valid(e.Now()):
		return keyID, nil
	}
	works, err := e.isActive(k.UserID)
	switch {
	case err != nil:
		return "", err
	case !works:
		end = k.UserID
	case k.ParentID != "":
		if end, err = e.of(k.ParentID); err != nil {
			return "", err
		}
	}
	e.known[keyID] = end
	return end, nil
}

// isActive reports whether the keys of a user may work. Those of nobody may.
func (e keyEnds) isActive(userID string) (bool, error) {
	if userID == "" {
		return true, nil
	}
	u, err := e.User(ledger.Scope{All: true}, userID)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return u.Active && u.DeletedAt.IsZero(), err
}
