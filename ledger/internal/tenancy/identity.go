package tenancy

import (
	"context"
	"fmt"
	"net/mail"
	"slices"

	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Bootstrap makes the first organization and the first key of an empty
// installation. On any other it does nothing and returns false.
func (l Tenancy) Bootstrap(ctx context.Context, organization string, limits quota.Limits, operator ledger.Key) (
	bool, error) {
	created := false
	err := l.InOwnTx(ctx, ledger.SystemActor("bootstrap"), func(tx *txn.Tx) error {
		created = false
		existing, err := tx.Port.Keys(ledger.Scope{All: true}, ledger.KeyFilter{}, ledger.Page{Limit: 1})
		if err != nil {
			return fmt.Errorf("looking for keys: %w", err)
		}
		if len(existing) > 0 {
			return nil
		}
		org := ledger.Organization{ID: tx.IDs.New(ids.Organization), Name: organization,
			Limits:    withDefaultLimits(limits),
			CreatedAt: tx.Now()}
		operator = newOperator(tx, operator, org.ID)
		tx.Change.Organizations = append(tx.Change.Organizations, org)
		tx.Change.Keys = append(tx.Change.Keys, operator)
		tx.AddEvent(ledger.Event{OrganizationID: org.ID, Type: "organization.created", Subject: org.ID,
			Message: org.Name})
		tx.AddEvent(ledger.Event{OrganizationID: org.ID, Type: "key.created", Subject: operator.ID,
			Message: operator.Name})
		created = true
		return nil
	})
	return created, err
}

// CreateOrganization makes a tenant. Only an operator may.
func (l Tenancy) CreateOrganization(ctx context.Context, actor ledger.Actor, name string,
	limits quota.Limits) (ledger.Organization, error) {
	var org ledger.Organization
	if err := CheckName("name", name); err != nil {
		return org, err
	}
	limits = withDefaultLimits(limits)
	if err := checkLimits(limits); err != nil {
		return org, err
	}
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		org = ledger.Organization{ID: tx.IDs.New(ids.Organization), Name: name, Limits: limits, CreatedAt: tx.Now()}
		tx.Change.Organizations = append(tx.Change.Organizations, org)
		tx.AddEvent(ledger.Event{OrganizationID: org.ID, Type: "organization.created", Subject: org.ID, Message: name})
		return nil
	})
	org.Version = 1
	return org, err
}

// CreateUser adds a person to an organization that the actor administers.
func (l Tenancy) CreateUser(ctx context.Context, actor ledger.Actor, user ledger.User) (ledger.User, error) {
	if parsed, err := mail.ParseAddress(user.Email); err != nil || parsed.Address != user.Email ||
		len(user.Email) > 254 {
		return user, &ledger.InvalidError{Field: "email", Rule: "must be an e-mail address alone",
			Fix: "write it as in ada@example.org"}
	}
	user.Email = ledger.CanonicalEmail(user.Email)
	if !slices.Contains([]ledger.Role{ledger.Viewer, ledger.Member, ledger.Admin}, user.Role) {
		return user, &ledger.InvalidError{Field: "role", Rule: "must be viewer, member or admin"}
	}
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if err := actor.CheckAdministers(user.OrganizationID); err != nil {
			return err
		}
		if _, err := ledger.LiveOrganization(tx.Port, actor.Scope(), user.OrganizationID); err != nil {
			return err
		}
		user.ID, user.Active, user.CreatedAt, user.Version = tx.IDs.New(ids.User), true, tx.Now(), 0
		tx.Change.Users = append(tx.Change.Users, user)
		tx.AddEvent(ledger.Event{OrganizationID: user.OrganizationID, Type: "user.created", Subject: user.ID,
			Message: string(user.Role)})
		return nil
	})
	user.Version = 1
	return user, err
}

// UpdateUser changes a person's role or shuts them out.
func (l Tenancy) UpdateUser(ctx context.Context, actor ledger.Actor, id string, version int, role ledger.Role,
	active bool) (ledger.User, error) {
	var user ledger.User
	if !slices.Contains([]ledger.Role{ledger.Viewer, ledger.Member, ledger.Admin}, role) {
		return user, &ledger.InvalidError{Field: "role", Rule: "must be viewer, member or admin"}
	}
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		var err error
		if user, err = ledger.LiveUser(tx.Port, actor.Scope(), id); err != nil {
			return err
		}
		if err := actor.CheckAdministers(user.OrganizationID); err != nil {
			return err
		}
		if !actor.AtLeast(user.Role) {
			return ledger.ErrDenied
		}
		if _, err := confirmCredential(tx, actor); err != nil {
			return err
		}
		if user.Version != version {
			return ledger.ErrConflict
		}
		carriesOperator := user.Role == ledger.Operator
		if carriesOperator {
			if err := lockOperators(tx); err != nil {
				return err
			}
		}
		user.Role, user.Active = role, active
		tx.Change.Users = append(tx.Change.Users, user)
		tx.AddEvent(ledger.Event{OrganizationID: user.OrganizationID, Type: "user.updated", Subject: user.ID,
			Message: string(role)})
		if carriesOperator {
			return keepOperator(tx)
		}
		return nil
	})
	user.Version++
	return user, err
}

// CheckName returns *ledger.InvalidError for a name that breaks tables or is
// too long.
func CheckName(field, s string) error {
	if s == "" || len(s) > 80 || ledger.ClipText(s, 80) != s {
		return &ledger.InvalidError{Field: field,
			Rule: "must be 1 to 80 characters on one line, without spaces at its ends"}
	}
	if ids.Resembles(s) {
		return namedLikeID(field)
	}
	return nil
}

// namedLikeID refuses a name that people would take for the id of something else.
func namedLikeID(field string) error {
	return &ledger.InvalidError{Field: field,
		Rule: "must not have the form of an id",
		Fix:  "use another name, or add a hyphen to this one"}
}

// CheckFree refuses a name that is the id of a key, whatever its form: in some
// places both are taken, and there the id counts.
func CheckFree(tx *txn.Tx, field, name string) error {
	known, err := tx.Port.Names(ledger.Scope{All: true}, ledger.NounKey, []string{name})
	if err != nil {
		return fmt.Errorf("comparing a name with ids: %w", err)
	}
	if len(known) > 0 {
		return namedLikeID(field)
	}
	return nil
}
