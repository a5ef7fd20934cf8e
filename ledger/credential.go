package ledger

import (
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
			if role != "" && !role.Includes(least) {
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
		Caps: k.Caps, UserCaps: user.Caps, Makers: c[1:].CapBounds(k.UserID), ExpiresAt: c.ExpiresAt(), Via: "api",
	}
}

// Bound is what a key or a person may book together with all that was made with
// it: exactly one of the ids is set.
type Bound struct {
	KeyRoot
	Caps quota.Caps
}

// CapBounds lists the caps of keys and of their people, but for one person, whose
// caps are known already.
func (c Credential) CapBounds(but string) []Bound {
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

// TightestCaps are the tightest of all that hold for it; false means that none do.
func (c Credential) TightestCaps() (quota.Caps, bool) {
	all := c.CapBounds("")
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
