package tenancy

import (
	"context"
	"errors"
	"fmt"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Identities is where keys and people are looked up.
type Identities interface {
	Key(s ledger.Scope, id string) (ledger.Key, error)
	User(s ledger.Scope, id string) (ledger.User, error)
}

// ReadCredential reads a key with all that it rests on. ErrNotFound: one of them
// is not there; those before it are returned.
func ReadCredential(r Identities, keyID string) (ledger.Credential, error) {
	var c ledger.Credential
	for id := keyID; id != ""; {
		if c.RestsOn(id) {
			return c, fmt.Errorf("key %s rests on itself: %w", keyID, ledger.ErrNotFound)
		}
		k, err := r.Key(ledger.Scope{All: true}, id)
		if err != nil {
			return c, err
		}
		h := ledger.Holder{Key: k}
		if k.UserID != "" {
			if h.User, err = r.User(ledger.Scope{All: true}, k.UserID); err != nil {
				return append(c, h), err
			}
		}
		c, id = append(c, h), k.ParentID
	}
	return c, nil
}

// Authenticate returns the credential of a key that may be used now. Everything
// else is ErrNotFound.
func (l Tenancy) Authenticate(ctx context.Context, keyID string) (ledger.Credential, error) {
	var c ledger.Credential
	err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		if c, err = ReadCredential(r, keyID); err != nil {
			return err
		}
		if !c.Valid(r.Now()) {
			return ledger.ErrNotFound
		}
		if org := c[0].Key.OrganizationID; org != "" {
			_, err = ledger.LiveOrganization(r, ledger.Scope{All: true}, org)
		}
		return err
	})
	return c, err
}

// confirmCredential returns the actor's credential as it is in this transaction: what was
// proved a moment ago may be revoked. The installation itself has none.
func confirmCredential(tx *txn.Tx, actor ledger.Actor) (ledger.Credential, error) {
	if actor.IsSystem() {
		return nil, nil
	}
	c, err := ReadCredential(tx.Port, actor.KeyID)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && !(c.Valid(tx.Now()) && c.Role().Includes(actor.Role)) {
		return nil, ledger.ErrDenied
	}
	return c, err
}
