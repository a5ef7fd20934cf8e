package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/forewarm/forewarm/core/quota"
)

// MintKey puts a new key under its maker, with the maker's bounds. One that the
// installation makes stands for itself.
func (c Credential) MintKey(k Key) (Key, error) {
	if len(c) == 0 {
		k.ParentID = ""
		return k, nil
	}
	k.ParentID = c[0].Key.ID
	switch end := c.ExpiresAt(); {
	case len(c) >= maxGenerations:
		return k, &StateError{Subject: "key " + k.ParentID, State: fmt.Sprintf("the %dth in a line of keys", len(c)),
			Asked: "make another key with it: have an operator adopt it, or use a key nearer the start of the line"}
	case !c.Role().Includes(k.Role):
		return k, &InvalidError{Field: "role", Rule: "must not exceed the role of the key that makes it"}
	case !end.IsZero() && (k.ExpiresAt.IsZero() || k.ExpiresAt.After(end)):
		return k, &InvalidError{Field: "expires_in_seconds",
			Rule: "must not outlive the key that makes it, which ends " + end.UTC().Format(time.RFC3339),
			Fix:  "leave it out to end with that key, or use a key that lasts longer"}
	}
	limit, bounded := c.TightestCaps()
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

// CheckAdministers reports nil when the actor may change people and keys of the
// organization.
func (a Actor) CheckAdministers(orgID string) error {
	if a.Role == Operator || (a.Role == Admin && a.OrganizationID == orgID && a.Kind == PersonKey) {
		return nil
	}
	return ErrDenied
}

// ErrLastOperator means that without this key no operator would be left, or only
// such whose keys expire.
var ErrLastOperator = errors.New("no operator's key that lasts would be left")
