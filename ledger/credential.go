package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/quota"
)

// Holder is a key and the person it acts for, zero if it is nobody's.
type Holder struct {
	Key  Key
	User User
}

// Credential is a key with all that it rests on: the key itself, then the key
// that made it, then that one's maker, up to the one that stands for itself. It
// may do only what every one of them may, and only while each of them may be
// used.
type Credential []Holder

// maxGenerations bounds how many keys a key may rest on, itself included: all of
// them are looked at where it is used.
const maxGenerations = 8

// Valid reports whether the key may be used at t.
func (c Credential) Valid(t time.Time) bool {
	return len(c) > 0 && !slices.ContainsFunc(c, func(h Holder) bool {
		return !h.Key.Valid(t) || h.Key.UserID != "" && !(h.User.Active && h.User.DeletedAt.IsZero())
	})
}

// Role is the least of the roles of its keys and their people.
func (c Credential) Role() Role {
	if len(c) == 0 {
		return ""
	}
	least := c[0].Key.Role
	for _, h := range c {
		for _, role := range []Role{h.Key.Role, h.User.Role} {
			if role != "" && !role.includes(least) {
				least = role
			}
		}
	}
	return least
}

// ExpiresAt is when the first of its keys expires; zero means never.
func (c Credential) ExpiresAt() time.Time {
	var first time.Time
	for _, h := range c {
		if at := h.Key.ExpiresAt; !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Actor is who the key speaks for.
func (c Credential) Actor() Actor {
	if len(c) == 0 {
		return Actor{}
	}
	k, user := c[0].Key, c[0].User
	return Actor{
		KeyID: k.ID, Kind: k.Kind, OrganizationID: k.OrganizationID, UserID: k.UserID, Role: c.Role(),
		Caps: k.Caps, UserCaps: user.Caps, Makers: c[1:].capBounds(k.UserID), ExpiresAt: c.ExpiresAt(), Via: "api",
	}
}

// Bound is what a key or a person may book together with all that was made with
// it: exactly one of the ids is set.
type Bound struct {
	KeyRoot
	Caps quota.Caps
}

// capBounds lists the caps of keys and of their people, but for one person, whose
// caps are known already.
func (c Credential) capBounds(but string) []Bound {
	var all []Bound
	seen := []string{but}
	for _, h := range c {
		if h.Key.Kind == AgentKey || h.Key.Caps != (quota.Caps{}) {
			all = append(all, Bound{KeyRoot: KeyRoot{KeyID: h.Key.ID}, Caps: h.Key.Caps})
		}
		if h.User.Caps != (quota.Caps{}) && !slices.Contains(seen, h.Key.UserID) {
			all = append(all, Bound{KeyRoot: KeyRoot{UserID: h.Key.UserID}, Caps: h.User.Caps})
			seen = append(seen, h.Key.UserID)
		}
	}
	return all
}

// tightestCaps are the tightest of all that hold for it; false means that none do.
func (c Credential) tightestCaps() (quota.Caps, bool) {
	all := c.capBounds("")
	if len(all) == 0 {
		return quota.Caps{}, false
	}
	tightest := all[0].Caps
	for _, bound := range all[1:] {
		tightest = tightest.Tightest(bound.Caps)
	}
	return tightest, true
}

// RestsOn reports whether the credential is of a key, or of one that rests on it.
func (c Credential) RestsOn(keyID string) bool {
	return slices.ContainsFunc(c, func(h Holder) bool { return h.Key.ID == keyID })
}

// ActsFor reports whether any of its keys acts for a person.
func (c Credential) ActsFor(userID string) bool {
	return slices.ContainsFunc(c, func(h Holder) bool { return h.Key.UserID == userID })
}

// identities is where keys and people are looked up.
type identities interface {
	Key(s Scope, id string) (Key, error)
	User(s Scope, id string) (User, error)
}

// readCredential reads a key with all that it rests on. ErrNotFound: one of them
// is not there; those before it are returned.
func readCredential(r identities, keyID string) (Credential, error) {
	var c Credential
	for id := keyID; id != ""; {
		if c.RestsOn(id) {
			return c, fmt.Errorf("key %s rests on itself: %w", keyID, ErrNotFound)
		}
		k, err := r.Key(Scope{All: true}, id)
		if err != nil {
			return c, err
		}
		h := Holder{Key: k}
		if k.UserID != "" {
			if h.User, err = r.User(Scope{All: true}, k.UserID); err != nil {
				return append(c, h), err
			}
		}
		c, id = append(c, h), k.ParentID
	}
	return c, nil
}

// Authenticate returns the credential of a key that may be used now. Everything
// else is ErrNotFound.
func (l Tenancy) Authenticate(ctx context.Context, keyID string) (Credential, error) {
	var c Credential
	err := l.store.Read(ctx, func(r Reader) (err error) {
		if c, err = readCredential(r, keyID); err != nil {
			return err
		}
		if !c.Valid(r.Now()) {
			return ErrNotFound
		}
		if org := c[0].Key.OrganizationID; org != "" {
			_, err = LiveOrganization(r, Scope{All: true}, org)
		}
		return err
	})
	return c, err
}

// confirmCredential returns the actor's credential as it is in this transaction: what was
// proved a moment ago may be revoked. The installation itself has none.
func confirmCredential(tx *groupTx, actor Actor) (Credential, error) {
	if actor.isSystem() {
		return nil, nil
	}
	c, err := readCredential(tx.port, actor.KeyID)
	if errors.Is(err, ErrNotFound) || err == nil && !(c.Valid(tx.now()) && c.Role().includes(actor.Role)) {
		return nil, ErrDenied
	}
	return c, err
}
