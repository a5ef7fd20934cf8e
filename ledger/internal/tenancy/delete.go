package tenancy

import (
	"context"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// IdsOf lists the ids of rows.
func IdsOf[T any](rows []T, id func(T) string) []string {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = id(row)
	}
	return ids
}

// ErrNoSuchPool says that a request names a pool that there is not.
func ErrNoSuchPool(idOrName string) error {
	return &ledger.InvalidError{Field: "pool", Rule: fmt.Sprintf("%q does not exist", ledger.ClipText(idOrName, 80)),
		Missing: &ledger.Missing{Noun: ledger.NounPool, Name: ledger.ClipText(idOrName, 80)}}
}

// LiveSchedules lists the ids of schedules for which a condition holds.
func LiveSchedules(tx *txn.Tx, s ledger.Scope, condition func(ledger.Schedule) bool) ([]string, error) {
	var found []string
	for after := ""; ; {
		page, err := tx.Port.Schedules(s, ledger.Page{After: after, Limit: 500})
		if err != nil {
			return nil, fmt.Errorf("listing schedules: %w", err)
		}
		if len(page) == 0 {
			return found, nil
		}
		for _, one := range page {
			if after = one.ID; condition(one) {
				found = append(found, one.ID)
			}
		}
	}
}

// DeleteOrganization ends a tenant that holds nothing any more: with live
// bookings or schedules, or as a holder of an observed pool, it is *InUseError, and
// *PromisesAtRiskError where others of its cohort borrow from it. What a cluster's own
// scheduler has placed for it is no booking, and stays counted as its. Its people and keys end with it, which are
// returned; its history stays. Only an operator may, and not its own.
func (l Tenancy) DeleteOrganization(ctx context.Context, actor ledger.Actor, id string) (keyIDs []string, err error) {
	err = l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		switch {
		case actor.Role != ledger.Operator:
			return ledger.ErrDenied
		case actor.OrganizationID == id:
			return &ledger.StateError{Subject: "organization " + id, State: "the one that this key belongs to",
				Asked: "delete it"}
		}
		operators, err := operatorOrganizations(tx)
		if err != nil {
			return err
		}
		t, err := lockTenants(tx, id, "", operators...)
		if err != nil {
			return err
		}
		org := t.organizations[id]
		if err := organizationInUse(tx, org); err != nil {
			return err
		}
		if err := leaveCohort(tx, t, id); err != nil {
			return err
		}
		keyIDs, err = endMembers(tx, org)
		if err != nil {
			return err
		}
		if err := endPause(tx, id); err != nil {
			return err
		}
		org.DeletedAt = tx.Now()
		tx.Change.Organizations = append(tx.Change.Organizations, org)
		tx.AddEvent(ledger.Event{OrganizationID: id, Type: "organization.deleted", Subject: id, Message: org.Name})
		return keepOperator(tx)
	})
	return keyIDs, err
}

// organizationInUse reports what is live of a locked organization.
func organizationInUse(tx *txn.Tx, org ledger.Organization) error {
	s, live, page := ledger.Scope{OrganizationID: org.ID}, ledger.BookingFilter{Live: true}, ledger.Page{Limit: 500}
	var in ledger.Remains
	reservations, err := tx.Port.Reservations(s, live, page)
	if err != nil {
		return fmt.Errorf("listing reservations: %w", err)
	}
	in.Add("reservations", IdsOf(reservations, func(r reservation.Reservation) string { return r.ID }))
	held, err := liveLeases(tx, s)
	if err != nil {
		return err
	}
	in.Add("allocations", held)
	holders, err := holdersOf(tx, org.ID)
	if err != nil {
		return err
	}
	in.Add("holders", holders)
	schedules, err := LiveSchedules(tx, s, func(ledger.Schedule) bool { return true })
	if err != nil {
		return err
	}
	in.Add("schedules", schedules)
	jobs, err := tx.Port.Jobs(s, ledger.JobFilter{Live: true}, page)
	if err != nil {
		return fmt.Errorf("listing jobs: %w", err)
	}
	in.Add("jobs", IdsOf(jobs, func(j job.Job) string { return j.ID }))
	return in.InUseError("organization " + org.Name)
}

// liveLeases lists the ids of allocations that somebody has asked for and not given back.
func liveLeases(tx *txn.Tx, s ledger.Scope) ([]string, error) {
	var held []string
	for after := ""; ; {
		page, err := tx.Port.Allocations(s, ledger.BookingFilter{Live: true}, ledger.Page{After: after, Limit: 500})
		if err != nil {
			return nil, fmt.Errorf("listing allocations: %w", err)
		}
		if len(page) == 0 {
			return held, nil
		}
		for _, a := range page {
			if after = a.ID; !a.Observed() {
				held = append(held, a.ID)
			}
		}
	}
}

// holdersOf names the rules of observed pools by which work is an organization's. The pools
// are locked: none gets such a rule while the organization is deleted.
func holdersOf(tx *txn.Tx, organizationID string) ([]string, error) {
	pools, err := ledger.ObservedPools(tx.Port, "")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, pool := range pools {
		p, err := tx.LockPool(pool.ID)
		if err != nil {
			return nil, fmt.Errorf("locking pool: %w", err)
		}
		if p.Pool.Holders.Default == organizationID {
			found = append(found, "all other work of "+p.Pool.Name)
		}
		for i, rule := range p.Pool.Holders.Rules {
			if rule.OrganizationID == organizationID {
				found = append(found, fmt.Sprintf("rule %d of %s", i+1, p.Pool.Name))
			}
		}
	}
	return found, nil
}

// leaveCohort refuses to take an organization out of its cohort while others are
// promised what they borrow from it.
func leaveCohort(tx *txn.Tx, t *tenants, id string) error {
	if t.organizations[id].Limits.Cohort == "" {
		return nil
	}
	if err := gatherPromises(tx, t); err != nil {
		return err
	}
	before := t.beyondLimits()
	delete(t.organizations, id)
	broken := slices.DeleteFunc(t.beyondLimits(), func(p ledger.AtRisk) bool {
		return slices.ContainsFunc(before, func(o ledger.AtRisk) bool { return o.ID == p.ID })
	})
	if len(broken) > 0 {
		return &ledger.PromisesAtRiskError{Promises: broken}
	}
	return nil
}

// endMembers deletes an organization's people and revokes its keys, whose ids it
// returns.
func endMembers(tx *txn.Tx, org ledger.Organization) ([]string, error) {
	for after := ""; ; {
		page, err := tx.Port.Users(ledger.Scope{OrganizationID: org.ID}, ledger.Page{After: after, Limit: 500})
		if err != nil {
			return nil, fmt.Errorf("listing users: %w", err)
		}
		if len(page) == 0 {
			return endKeys(tx, org.ID, func(ledger.Key) bool { return true })
		}
		for _, user := range page {
			after = user.ID
			endUser(tx, user)
		}
	}
}

func endUser(tx *txn.Tx, user ledger.User) {
	user.DeletedAt, user.Active = tx.Now(), false
	tx.Change.Users = append(tx.Change.Users, user)
	tx.AddEvent(ledger.Event{OrganizationID: user.OrganizationID, Type: "user.deleted", Subject: user.ID,
		Message: string(user.Role)})
}

// endKeys revokes the keys of an organization for which a condition holds and
// returns their ids.
func endKeys(tx *txn.Tx, organizationID string, condition func(ledger.Key) bool) ([]string, error) {
	var ended []string
	for after := ""; ; {
		page, err := tx.Port.Keys(ledger.Scope{OrganizationID: organizationID}, ledger.KeyFilter{},
			ledger.Page{After: after, Limit: 500})
		if err != nil {
			return nil, fmt.Errorf("listing keys: %w", err)
		}
		if len(page) == 0 {
			return ended, nil
		}
		for _, k := range page {
			if after = k.ID; k.RevokedAt.IsZero() && condition(k) {
				revokeKey(tx, k)
				ended = append(ended, k.ID)
			}
		}
	}
}

func revokeKey(tx *txn.Tx, k ledger.Key) ledger.Key {
	k.RevokedAt = tx.Now()
	tx.Change.Keys = append(tx.Change.Keys, k)
	tx.AddEvent(ledger.Event{OrganizationID: k.OrganizationID, Type: "key.revoked", Subject: k.ID, Message: k.Name})
	return k
}

// endPause ends the pause of an organization, if there is one.
func endPause(tx *txn.Tx, organizationID string) error {
	paused, err := ReadPauses(tx)
	if err != nil {
		return err
	}
	if p, ok := paused[organizationID]; ok {
		p.Until = tx.Now()
		tx.Change.Pauses = append(tx.Change.Pauses, p)
	}
	return nil
}

// DeleteUser ends a person of an organization that the actor administers. Their
// keys end with them, which are returned; what these booked stays the
// organization's.
func (l Tenancy) DeleteUser(ctx context.Context, actor ledger.Actor, id string) (keyIDs []string, err error) {
	err = l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		user, err := ledger.LiveUser(tx.Port, actor.Scope(), id)
		if err != nil {
			return err
		}
		if err := actor.CheckAdministers(user.OrganizationID); err != nil {
			return err
		}
		if !actor.AtLeast(user.Role) {
			return ledger.ErrDenied
		}
		if user.Role == ledger.Operator {
			if err := lockOperators(tx); err != nil {
				return err
			}
		}
		if keyIDs, err = endKeys(tx, user.OrganizationID,
			func(k ledger.Key) bool { return k.UserID == id }); err != nil {
			return err
		}
		endUser(tx, user)
		if user.Role == ledger.Operator {
			return keepOperator(tx)
		}
		return nil
	})
	return keyIDs, err
}
