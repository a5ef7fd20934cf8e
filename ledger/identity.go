package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
)

// Bootstrap makes the first organization and the first key of an empty
// installation. On any other it does nothing and returns false.
func (l *Ledger) Bootstrap(ctx context.Context, organization string, limits quota.Limits, operator Key) (bool, error) {
	created := false
	err := l.do(ctx, SystemActor("bootstrap"), func(u *unit) error {
		created = false
		existing, err := u.tx.Keys(Scope{All: true}, Page{Limit: 1})
		if err != nil {
			return fmt.Errorf("looking for keys: %w", err)
		}
		if len(existing) > 0 {
			return nil
		}
		org := Organization{ID: u.ids.New(ids.Organization), Name: organization, Limits: normal(limits), CreatedAt: u.now()}
		operator.OrganizationID, operator.Kind, operator.Role, operator.CreatedAt = org.ID, PersonKey, Operator, u.now()
		u.change.Organizations = append(u.change.Organizations, org)
		u.change.Keys = append(u.change.Keys, operator)
		u.event(Event{OrganizationID: org.ID, Type: "organization.created", Subject: org.ID, Message: org.Name})
		u.event(Event{OrganizationID: org.ID, Type: "key.created", Subject: operator.ID, Message: operator.Name})
		created = true
		return nil
	})
	return created, err
}

// Authenticate returns a key that may be used now, and the user it acts for
// (zero if none). Everything else is ErrNotFound.
func (l *Ledger) Authenticate(ctx context.Context, keyID string) (k Key, user User, err error) {
	err = l.store.Read(ctx, func(r Reader) error {
		if k, err = r.Key(Scope{All: true}, keyID); err != nil {
			return err
		}
		if !k.Valid(r.Now()) {
			return ErrNotFound
		}
		if k.OrganizationID != "" {
			if _, err := LiveOrganization(r, Scope{All: true}, k.OrganizationID); err != nil {
				return err
			}
		}
		if k.UserID == "" {
			user = User{}
			return nil
		}
		if user, err = r.User(Scope{All: true}, k.UserID); err != nil {
			return err
		}
		if !user.Active || !user.DeletedAt.IsZero() {
			return ErrNotFound
		}
		return nil
	})
	return k, user, err
}

// touchEvery is how coarse a key's last use is kept.
const touchEvery = time.Minute

// TouchKey notes that a key was used.
func (l *Ledger) TouchKey(ctx context.Context, keyID string) error {
	err := l.do(ctx, SystemActor("api"), func(u *unit) error {
		k, err := u.tx.Key(Scope{All: true}, keyID)
		if err != nil || u.now().Sub(k.LastUsedAt) < touchEvery {
			return err
		}
		k.LastUsedAt = u.now()
		u.change.Keys = append(u.change.Keys, k)
		return nil
	})
	if errors.Is(err, ErrConflict) { // somebody else noted it in the same moment
		return nil
	}
	return err
}

// CreateOrganization makes a tenant. Only an operator may.
func (l *Ledger) CreateOrganization(ctx context.Context, actor Actor, name string, limits quota.Limits) (Organization, error) {
	var org Organization
	if err := checkName("name", name); err != nil {
		return org, err
	}
	limits = normal(limits)
	if err := checkLimits(limits); err != nil {
		return org, err
	}
	err := l.do(ctx, actor, func(u *unit) error {
		if actor.Role != Operator {
			return ErrDenied
		}
		org = Organization{ID: u.ids.New(ids.Organization), Name: name, Limits: limits, CreatedAt: u.now()}
		u.change.Organizations = append(u.change.Organizations, org)
		u.event(Event{OrganizationID: org.ID, Type: "organization.created", Subject: org.ID, Message: name})
		return nil
	})
	org.Version = 1
	return org, err
}

// CreateUser adds a person to an organization that the actor administers.
func (l *Ledger) CreateUser(ctx context.Context, actor Actor, user User) (User, error) {
	if _, err := mail.ParseAddress(user.Email); err != nil || len(user.Email) > 254 {
		return user, &InvalidError{Field: "email", Rule: "must be an e-mail address"}
	}
	if !slices.Contains([]Role{Viewer, Member, Admin}, user.Role) {
		return user, &InvalidError{Field: "role", Rule: "must be viewer, member or admin"}
	}
	err := l.do(ctx, actor, func(u *unit) error {
		if err := actor.administers(user.OrganizationID); err != nil {
			return err
		}
		if _, err := LiveOrganization(u.tx, actor.Scope(), user.OrganizationID); err != nil {
			return err
		}
		user.ID, user.Active, user.CreatedAt, user.Version = u.ids.New(ids.User), true, u.now(), 0
		u.change.Users = append(u.change.Users, user)
		u.event(Event{OrganizationID: user.OrganizationID, Type: "user.created", Subject: user.ID, Message: string(user.Role)})
		return nil
	})
	user.Version = 1
	return user, err
}

// UpdateUser changes a person's role or shuts them out.
func (l *Ledger) UpdateUser(ctx context.Context, actor Actor, id string, version int, role Role, active bool) (User, error) {
	var user User
	if !slices.Contains([]Role{Viewer, Member, Admin}, role) {
		return user, &InvalidError{Field: "role", Rule: "must be viewer, member or admin"}
	}
	err := l.do(ctx, actor, func(u *unit) error {
		var err error
		if user, err = LiveUser(u.tx, actor.Scope(), id); err != nil {
			return err
		}
		if err := actor.administers(user.OrganizationID); err != nil {
			return err
		}
		if user.Version != version {
			return ErrConflict
		}
		user.Role, user.Active = role, active
		u.change.Users = append(u.change.Users, user)
		u.event(Event{OrganizationID: user.OrganizationID, Type: "user.updated", Subject: user.ID, Message: string(role)})
		return nil
	})
	user.Version++
	return user, err
}

// CreateKey stores a key whose secret was made and hashed by the caller. Its
// rights never exceed its maker's.
func (l *Ledger) CreateKey(ctx context.Context, actor Actor, k Key) (Key, error) {
	if err := checkKey(actor, k); err != nil {
		return k, err
	}
	err := l.do(ctx, actor, func(u *unit) error {
		if err := actor.administers(k.OrganizationID); err != nil {
			return err
		}
		if _, err := LiveOrganization(u.tx, actor.Scope(), k.OrganizationID); err != nil {
			return err
		}
		if k.UserID != "" {
			user, err := LiveUser(u.tx, actor.Scope(), k.UserID)
			if err != nil || user.OrganizationID != k.OrganizationID {
				return &InvalidError{Field: "user_id", Rule: "must be a user of the same organization"}
			}
		}
		if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(u.now()) {
			return &InvalidError{Field: "expires_at", Rule: "must be in the future"}
		}
		k.CreatedBy, k.CreatedAt, k.Version = actor.KeyID, u.now(), 0
		u.change.Keys = append(u.change.Keys, k)
		u.event(Event{OrganizationID: k.OrganizationID, Type: "key.created", Subject: k.ID, Message: string(k.Kind) + " " + k.Name})
		return nil
	})
	k.Version = 1
	return k, err
}

// RevokeKey ends a key. Repeated, it changes nothing.
func (l *Ledger) RevokeKey(ctx context.Context, actor Actor, id string) (Key, error) {
	var k Key
	err := l.do(ctx, actor, func(u *unit) error {
		var err error
		if k, err = u.tx.Key(actor.Scope(), id); err != nil {
			return err
		}
		if err := actor.administers(k.OrganizationID); err != nil {
			return err
		}
		if !k.RevokedAt.IsZero() {
			return nil
		}
		k = u.revoke(k)
		return nil
	})
	return k, err
}

// administers reports nil when the actor may change people and keys of the
// organization.
func (a Actor) administers(orgID string) error {
	if a.Role == Operator || (a.Role == Admin && a.OrganizationID == orgID && a.Kind == PersonKey) {
		return nil
	}
	return ErrDenied
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

func checkName(field, s string) error {
	if s == "" || len(s) > 80 || clip(s, 80) != s {
		return &InvalidError{Field: field, Rule: "must be 1 to 80 characters on one line, without spaces at its ends"}
	}
	return nil
}
