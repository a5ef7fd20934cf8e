package tenancy

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// touchEvery is how coarse a key's last use is kept.
const touchEvery = time.Minute

// TouchKey notes that a key was used.
func (l Tenancy) TouchKey(ctx context.Context, keyID string) error {
	err := l.InOwnTx(ctx, ledger.SystemActor("api"), func(tx *txn.Tx) error {
		k, err := tx.Port.Key(ledger.Scope{All: true}, keyID)
		if err != nil || tx.Now().Sub(k.LastUsedAt) < touchEvery {
			return err
		}
		k.LastUsedAt = tx.Now()
		tx.Change.Keys = append(tx.Change.Keys, k)
		return nil
	})
	if errors.Is(err, ledger.ErrConflict) { // somebody else noted it in the same moment
		return nil
	}
	return err
}

// CreateKey stores a key whose secret was made and hashed by the caller. It never
// exceeds the key that makes it, on which it rests from then on (see Credential):
// not its role, nor its caps, which it inherits where none are given, nor its
// life. A zero ExpiresAt means never, and is refused where the maker expires.
func (l Tenancy) CreateKey(ctx context.Context, actor ledger.Actor, k ledger.Key) (ledger.Key, error) {
	if err := checkKey(actor, k); err != nil {
		return k, err
	}
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		maker, err := confirmCredential(tx, actor)
		if err != nil {
			return err
		}
		if err := actor.CheckAdministers(k.OrganizationID); err != nil {
			return err
		}
		if _, err := ledger.LiveOrganization(tx.Port, actor.Scope(), k.OrganizationID); err != nil {
			return err
		}
		if k.UserID != "" {
			user, err := ledger.LiveUser(tx.Port, actor.Scope(), k.UserID)
			if err != nil || user.OrganizationID != k.OrganizationID {
				return &ledger.InvalidError{Field: "user_id", Rule: "must be a user of the same organization"}
			}
		}
		if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(tx.Now()) {
			return &ledger.InvalidError{Field: "expires_at", Rule: "must be in the future"}
		}
		if err := CheckFree(tx, "name", k.Name); err != nil {
			return err
		}
		if k, err = maker.MintKey(k); err != nil {
			return err
		}
		k.CreatedBy, k.CreatedAt, k.Version = actor.KeyID, tx.Now(), 0
		tx.Change.Keys = append(tx.Change.Keys, k)
		tx.AddEvent(ledger.Event{OrganizationID: k.OrganizationID, Type: "key.created", Subject: k.ID,
			Message: string(k.Kind) + " " + k.Name})
		return nil
	})
	k.Version = 1
	return k, err
}

// RevokeKey ends a key, and with it every key that rests on it. Repeated, it
// changes nothing. Nobody ends a key of a role above their own, and nobody the
// last of an operator: ErrLastOperator.
func (l Tenancy) RevokeKey(ctx context.Context, actor ledger.Actor, id string) (ledger.Key, error) {
	var k ledger.Key
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		seen, err := tx.Port.Key(actor.Scope(), id)
		if err == nil && seen.Role == ledger.Operator {
			err = lockOperators(tx)
		}
		if err != nil {
			return err
		}
		if k, err = keyToChange(tx, actor, id); err != nil || !k.RevokedAt.IsZero() {
			return err
		}
		k = revokeKey(tx, k)
		if k.Role == ledger.Operator {
			return keepOperator(tx)
		}
		return nil
	})
	return k, err
}

// keyToChange reads a key that the actor may end.
func keyToChange(tx *txn.Tx, actor ledger.Actor, id string) (ledger.Key, error) {
	k, err := tx.Port.Key(actor.Scope(), id)
	if err != nil {
		return k, err
	}
	if err := actor.CheckAdministers(k.OrganizationID); err != nil {
		return k, err
	}
	if !actor.AtLeast(k.Role) {
		return k, ledger.ErrDenied
	}
	_, err = confirmCredential(tx, actor)
	return k, err
}

// AdoptKey has a key stand for itself: from then on it does not end with the key
// that made it, and is bound by its own caps, role and end alone. Only an operator
// may whose own key has no caps and does not rest on the one that is adopted.
// Repeated, it changes nothing.
func (l Tenancy) AdoptKey(ctx context.Context, actor ledger.Actor, id string) (ledger.Key, error) {
	var k ledger.Key
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		by, err := confirmCredential(tx, actor)
		if err != nil {
			return err
		}
		if k, err = tx.Port.Key(actor.Scope(), id); err != nil {
			return err
		}
		_, capped := by.TightestCaps()
		switch {
		case capped || by.RestsOn(id):
			return ledger.ErrDenied
		case !k.RevokedAt.IsZero():
			return &ledger.StateError{Subject: "key " + k.ID, State: "revoked", Asked: "adopt it"}
		case k.ParentID == "":
			return nil
		}
		maker := k.ParentID
		k.ParentID = ""
		tx.Change.Keys = append(tx.Change.Keys, k)
		tx.AddEvent(ledger.Event{OrganizationID: k.OrganizationID, Type: "key.adopted", Subject: k.ID,
			Message: k.Name + ", until now a key of " + maker})
		return nil
	})
	return k, err
}

func checkKey(actor ledger.Actor, k ledger.Key) error {
	if err := CheckName("name", k.Name); err != nil {
		return err
	}
	if !slices.Contains(ledger.Order, k.Role) {
		return &ledger.InvalidError{Field: "role", Rule: "must be viewer, member, admin or operator"}
	}
	if !actor.AtLeast(k.Role) {
		return &ledger.InvalidError{Field: "role", Rule: "must not exceed the role of the key that makes it"}
	}
	if k.Kind == ledger.AgentKey && k.Role != ledger.Member {
		return &ledger.InvalidError{Field: "role", Rule: "must be member for an agent's key"}
	}
	return checkCaps(k.Caps)
}
