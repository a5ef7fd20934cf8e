package ledger

import (
	"context"
	"fmt"
	"net/mail"
	"slices"

	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
)

// Bootstrap makes the first organization and the first key of an empty
// installation. On any other it does nothing and returns false.
func (l Tenancy) Bootstrap(ctx context.Context, organization string, limits quota.Limits, operator Key) (bool, error) {
	created := false
	err := l.inOwnTx(ctx, SystemActor("bootstrap"), func(tx *groupTx) error {
		created = false
		existing, err := tx.port.Keys(Scope{All: true}, KeyFilter{}, Page{Limit: 1})
		if err != nil {
			return fmt.Errorf("looking for keys: %w", err)
		}
		if len(existing) > 0 {
			return nil
		}
		org := Organization{ID: tx.ids.New(ids.Organization), Name: organization, Limits: withDefaultLimits(limits),
			CreatedAt: tx.now()}
		operator = newOperator(tx, operator, org.ID)
		tx.change.Organizations = append(tx.change.Organizations, org)
		tx.change.Keys = append(tx.change.Keys, operator)
		tx.addEvent(Event{OrganizationID: org.ID, Type: "organization.created", Subject: org.ID, Message: org.Name})
		tx.addEvent(Event{OrganizationID: org.ID, Type: "key.created", Subject: operator.ID, Message: operator.Name})
		created = true
		return nil
	})
	return created, err
}

// CreateOrganization makes a tenant. Only an operator may.
func (l Tenancy) CreateOrganization(ctx context.Context, actor Actor, name string,
	limits quota.Limits) (Organization, error) {
	var org Organization
	if err := checkName("name", name); err != nil {
		return org, err
	}
	limits = withDefaultLimits(limits)
	if err := checkLimits(limits); err != nil {
		return org, err
	}
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if actor.Role != Operator {
			return ErrDenied
		}
		org = Organization{ID: tx.ids.New(ids.Organization), Name: name, Limits: limits, CreatedAt: tx.now()}
		tx.change.Organizations = append(tx.change.Organizations, org)
		tx.addEvent(Event{OrganizationID: org.ID, Type: "organization.created", Subject: org.ID, Message: name})
		return nil
	})
	org.Version = 1
	return org, err
}

// CreateUser adds a person to an organization that the actor administers.
func (l Tenancy) CreateUser(ctx context.Context, actor Actor, user User) (User, error) {
	if parsed, err := mail.ParseAddress(user.Email); err != nil || parsed.Address != user.Email ||
		len(user.Email) > 254 {
		return user, &InvalidError{Field: "email", Rule: "must be an e-mail address alone",
			Fix: "write it as in ada@example.org"}
	}
	if !slices.Contains([]Role{Viewer, Member, Admin}, user.Role) {
		return user, &InvalidError{Field: "role", Rule: "must be viewer, member or admin"}
	}
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if err := actor.checkAdministers(user.OrganizationID); err != nil {
			return err
		}
		if _, err := LiveOrganization(tx.port, actor.Scope(), user.OrganizationID); err != nil {
			return err
		}
		user.ID, user.Active, user.CreatedAt, user.Version = tx.ids.New(ids.User), true, tx.now(), 0
		tx.change.Users = append(tx.change.Users, user)
		tx.addEvent(Event{OrganizationID: user.OrganizationID, Type: "user.created", Subject: user.ID,
			Message: string(user.Role)})
		return nil
	})
	user.Version = 1
	return user, err
}

// UpdateUser changes a person's role or shuts them out.
func (l Tenancy) UpdateUser(ctx context.Context, actor Actor, id string, version int, role Role,
	active bool) (User, error) {
	var user User
	if !slices.Contains([]Role{Viewer, Member, Admin}, role) {
		return user, &InvalidError{Field: "role", Rule: "must be viewer, member or admin"}
	}
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		var err error
		if user, err = LiveUser(tx.port, actor.Scope(), id); err != nil {
			return err
		}
		if err := actor.checkAdministers(user.OrganizationID); err != nil {
			return err
		}
		if !actor.AtLeast(user.Role) {
			return ErrDenied
		}
		if _, err := confirmCredential(tx, actor); err != nil {
			return err
		}
		if user.Version != version {
			return ErrConflict
		}
		carriesOperator := user.Role == Operator
		if carriesOperator {
			if err := lockOperators(tx); err != nil {
				return err
			}
		}
		user.Role, user.Active = role, active
		tx.change.Users = append(tx.change.Users, user)
		tx.addEvent(Event{OrganizationID: user.OrganizationID, Type: "user.updated", Subject: user.ID,
			Message: string(role)})
		if carriesOperator {
			return keepOperator(tx)
		}
		return nil
	})
	user.Version++
	return user, err
}

// checkAdministers reports nil when the actor may change people and keys of the
// organization.
func (a Actor) checkAdministers(orgID string) error {
	if a.Role == Operator || (a.Role == Admin && a.OrganizationID == orgID && a.Kind == PersonKey) {
		return nil
	}
	return ErrDenied
}

func checkName(field, s string) error {
	if s == "" || len(s) > 80 || clipText(s, 80) != s {
		return &InvalidError{Field: field, Rule: "must be 1 to 80 characters on one line, without spaces at its ends"}
	}
	if ids.Resembles(s) {
		return namedLikeID(field)
	}
	return nil
}

// namedLikeID refuses a name that people would take for the id of something else.
func namedLikeID(field string) error {
	return &InvalidError{Field: field, Rule: "must not have the form of an id, which tells one thing from all others",
		Fix: "use another name, or add a hyphen to this one"}
}

// checkFree refuses a name that is the id of a key, whatever its form: in some
// places both are taken, and there the id counts.
func checkFree(tx *groupTx, field, name string) error {
	known, err := tx.port.Names(Scope{All: true}, NounKey, []string{name})
	if err != nil {
		return fmt.Errorf("comparing a name with ids: %w", err)
	}
	if len(known) > 0 {
		return namedLikeID(field)
	}
	return nil
}
