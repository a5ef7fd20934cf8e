package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/quota"
)

// touchEvery is how coarse a key's last use is kept.
const touchEvery = time.Minute

// TouchKey notes that a key was used.
func (l Tenancy) TouchKey(ctx context.Context, keyID string) error {
	err := l.inOwnTx(ctx, SystemActor("api"), func(tx *groupTx) error {
		k, err := tx.port.Key(Scope{All: true}, keyID)
		if err != nil || tx.now().Sub(k.LastUsedAt) < touchEvery {
			return err
		}
		k.LastUsedAt = tx.now()
		tx.change.Keys = append(tx.change.Keys, k)
		return nil
	})
	if errors.Is(err, ErrConflict) { // somebody else noted it in the same moment
		return nil
	}
	return err
}

// CreateKey stores a key whose secret was made and hashed by the caller. It never
// exceeds the key that makes it, on which it rests from then on (see Credential):
// not its role, nor its caps, which it inherits where none are given, nor its
// life. A zero ExpiresAt means never, and is refused where the maker expires.
func (l Tenancy) CreateKey(ctx context.Context, actor Actor, k Key) (Key, error) {
	if err := checkKey(actor, k); err != nil {
		return k, err
	}
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		maker, err := confirmCredential(tx, actor)
		if err != nil {
			return err
		}
		if err := actor.checkAdministers(k.OrganizationID); err != nil {
			return err
		}
		if _, err := LiveOrganization(tx.port, actor.Scope(), k.OrganizationID); err != nil {
			return err
		}
		if k.UserID != "" {
			user, err := LiveUser(tx.port, actor.Scope(), k.UserID)
			if err != nil || user.OrganizationID != k.OrganizationID {
				return &InvalidError{Field: "user_id", Rule: "must be a user of the same organization"}
			}
		}
		if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(tx.now()) {
			return &InvalidError{Field: "expires_at", Rule: "must be in the future"}
		}
		if err := checkFree(tx, "name", k.Name); err != nil {
			return err
		}
		if k, err = maker.mintKey(k); err != nil {
			return err
		}
		k.CreatedBy, k.CreatedAt, k.Version = actor.KeyID, tx.now(), 0
		tx.change.Keys = append(tx.change.Keys, k)
		tx.addEvent(Event{OrganizationID: k.OrganizationID, Type: "key.created", Subject: k.ID,
			Message: string(k.Kind) + " " + k.Name})
		return nil
	})
	k.Version = 1
	return k, err
}

// mintKey puts a new key under its maker, with the maker's bounds. One that the
// installation makes stands for itself.
func (c Credential) mintKey(k Key) (Key, error) {
	if len(c) == 0 {
		k.ParentID = ""
		return k, nil
	}
	k.ParentID = c[0].Key.ID
	switch end := c.ExpiresAt(); {
	case len(c) >= maxGenerations:
		return k, &StateError{Subject: "key " + k.ParentID, State: fmt.Sprintf("the %dth in a line of keys", len(c)),
			Asked: "make another with it: have an operator adopt it, or use a key further up"}
	case !c.Role().includes(k.Role):
		return k, &InvalidError{Field: "role", Rule: "must not exceed the role of the key that makes it"}
	case !end.IsZero() && (k.ExpiresAt.IsZero() || k.ExpiresAt.After(end)):
		return k, &InvalidError{Field: "expires_in_seconds",
			Rule: "must not outlive the key that makes it, which ends " + end.UTC().Format(time.RFC3339),
			Fix:  "leave it out to end with that key, or use a key that lasts longer"}
	}
	limit, bounded := c.tightestCaps()
	switch {
	case !bounded:
		return k, nil
	case k.OrganizationID != c[0].Key.OrganizationID:
		return k, &InvalidError{Field: "organization_id", Rule: "must be the maker's own, whose caps are counted there"}
	case k.Kind == PersonKey && k.Caps == (quota.Caps{}):
		k.Caps = limit
	}
	if field := k.Caps.Beyond(limit); field != "" {
		return k, &InvalidError{Field: "caps." + field,
			Rule: "must not exceed the caps of the key that makes it, nor its person's"}
	}
	return k, nil
}

// RevokeKey ends a key, and with it every key that rests on it. Repeated, it
// changes nothing. Nobody ends a key of a role above their own, and nobody the
// last of an operator: ErrLastOperator.
func (l Tenancy) RevokeKey(ctx context.Context, actor Actor, id string) (Key, error) {
	var k Key
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		seen, err := tx.port.Key(actor.Scope(), id)
		if err == nil && seen.Role == Operator {
			err = lockOperators(tx)
		}
		if err != nil {
			return err
		}
		if k, err = keyToChange(tx, actor, id); err != nil || !k.RevokedAt.IsZero() {
			return err
		}
		k = revokeKey(tx, k)
		if k.Role == Operator {
			return keepOperator(tx)
		}
		return nil
	})
	return k, err
}

// keyToChange reads a key that the actor may end.
func keyToChange(tx *groupTx, actor Actor, id string) (Key, error) {
	k, err := tx.port.Key(actor.Scope(), id)
	if err != nil {
		return k, err
	}
	if err := actor.checkAdministers(k.OrganizationID); err != nil {
		return k, err
	}
	if !actor.AtLeast(k.Role) {
		return k, ErrDenied
	}
	_, err = confirmCredential(tx, actor)
	return k, err
}

// AdoptKey has a key stand for itself: from then on it does not end with the key
// that made it, and is bound by its own caps, role and end alone. Only an operator
// may whose own key has no caps and does not rest on the one that is adopted.
// Repeated, it changes nothing.
func (l Tenancy) AdoptKey(ctx context.Context, actor Actor, id string) (Key, error) {
	var k Key
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if actor.Role != Operator {
			return ErrDenied
		}
		by, err := confirmCredential(tx, actor)
		if err != nil {
			return err
		}
		if k, err = tx.port.Key(actor.Scope(), id); err != nil {
			return err
		}
		_, capped := by.tightestCaps()
		switch {
		case capped || by.RestsOn(id):
			return ErrDenied
		case !k.RevokedAt.IsZero():
			return &StateError{Subject: "key " + k.ID, State: "revoked", Asked: "adopt it"}
		case k.ParentID == "":
			return nil
		}
		maker := k.ParentID
		k.ParentID = ""
		tx.change.Keys = append(tx.change.Keys, k)
		tx.addEvent(Event{OrganizationID: k.OrganizationID, Type: "key.adopted", Subject: k.ID,
			Message: k.Name + ", until now a key of " + maker})
		return nil
	})
	return k, err
}

func checkKey(actor Actor, k Key) error {
	if err := checkName("name", k.Name); err != nil {
		return err
	}
	if !slices.Contains(order, k.Role) {
		return &InvalidError{Field: "role", Rule: "must be viewer, member, admin or operator"}
	}
	if !actor.AtLeast(k.Role) {
		return &InvalidError{Field: "role", Rule: "must not exceed the role of the key that makes it"}
	}
	if k.Kind == AgentKey && k.Role != Member {
		return &InvalidError{Field: "role", Rule: "must be member for an agent's key"}
	}
	return checkCaps(k.Caps)
}
