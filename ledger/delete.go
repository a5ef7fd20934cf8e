package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
)

// InUseError says that something cannot be deleted yet, with everything that is
// still there.
type InUseError struct {
	Subject string // such as: pool lab
	In      []Use
}

// Use is one kind of thing that keeps something from being deleted.
type Use struct {
	Noun  string   // plural: nodes, reservations, allocations, schedules
	Count int      // at most 500 are counted
	IDs   []string // the first few
}

// Error names what is still there.
func (e *InUseError) Error() string {
	parts := make([]string, len(e.In))
	for i, use := range e.In {
		parts[i] = fmt.Sprintf("%d %s", use.Count, use.Noun)
	}
	return fmt.Sprintf("%s still has %s", e.Subject, strings.Join(parts, ", "))
}

// shownInUse is how many ids of a kind an InUseError names.
const shownInUse = 5

// remains collects what is there of each kind.
type remains []Use

func (in *remains) addRemaining(noun string, ids []string) {
	if len(ids) > 0 {
		*in = append(*in, Use{Noun: noun, Count: len(ids), IDs: ids[:min(len(ids), shownInUse)]})
	}
}

func (in remains) inUseError(subject string) error {
	if len(in) == 0 {
		return nil
	}
	return &InUseError{Subject: subject, In: in}
}

func idsOf[T any](rows []T, id func(T) string) []string {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = id(row)
	}
	return ids
}

// LivePool reads a pool by id or name. One that is deleted is ErrNotFound.
func LivePool(r Reader, idOrName string) (Pool, error) {
	p, err := r.Pool(idOrName)
	if err == nil && !p.DeletedAt.IsZero() {
		return Pool{}, ErrNotFound
	}
	return p, err
}

// errNoSuchPool says that a request names a pool that there is not.
func errNoSuchPool(idOrName string) error {
	return &InvalidError{Field: "pool", Rule: fmt.Sprintf("%q does not exist", clipText(idOrName, 80)),
		Missing: &Missing{Noun: NounPool, Name: clipText(idOrName, 80)}}
}

// LiveOrganization reads an organization. One that is deleted is ErrNotFound.
func LiveOrganization(r Reader, s Scope, id string) (Organization, error) {
	o, err := r.Organization(s, id)
	if err == nil && !o.DeletedAt.IsZero() {
		return Organization{}, ErrNotFound
	}
	return o, err
}

// LiveUser reads a person. One that is deleted is ErrNotFound.
func LiveUser(r Reader, s Scope, id string) (User, error) {
	user, err := r.User(s, id)
	if err == nil && !user.DeletedAt.IsZero() {
		return User{}, ErrNotFound
	}
	return user, err
}

// DeletePool ends a pool, by id or name, in which nothing is left: with live
// nodes, bookings or schedules it is *InUseError. Its history stays, and its name
// may be used again. Only an operator may.
func (l Fleet) DeletePool(ctx context.Context, actor Actor, idOrName string) error {
	return l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if actor.Role != Operator {
			return ErrDenied
		}
		p, err := tx.livePool(idOrName)
		if err != nil {
			return err
		}
		if err := poolInUse(tx, p); err != nil {
			return err
		}
		gone := p.Pool
		gone.DeletedAt = tx.now()
		p.putPool(gone)
		tx.addEvent(Event{Type: "pool.deleted", Subject: gone.ID, PoolID: gone.ID, Message: gone.Name})
		return nil
	})
}

// poolInUse reports what is live in a locked pool.
func poolInUse(tx *groupTx, p *poolTx) error {
	s := plannerSnapshot(p)
	var in remains
	in.addRemaining("nodes", idsOf(s.Nodes, func(n node.Node) string { return n.ID }))
	in.addRemaining("reservations", idsOf(s.Reservations, func(r reservation.Reservation) string { return r.ID }))
	in.addRemaining("allocations", idsOf(s.Allocations, func(a allocation.Allocation) string { return a.ID }))
	schedules, err := liveSchedules(tx, Scope{All: true}, func(s Schedule) bool { return s.PoolID == p.Pool.ID })
	if err != nil {
		return err
	}
	in.addRemaining("schedules", schedules)
	return in.inUseError("pool " + p.Pool.Name)
}

// liveSchedules lists the ids of schedules for which a condition holds.
func liveSchedules(tx *groupTx, s Scope, condition func(Schedule) bool) ([]string, error) {
	var found []string
	for after := ""; ; {
		page, err := tx.port.Schedules(s, Page{After: after, Limit: 500})
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
// bookings or schedules it is *InUseError, and *PromisesAtRiskError where others
// of its cohort borrow from it. Its people and keys end with it, which are
// returned; its history stays. Only an operator may, and not its own.
func (l Tenancy) DeleteOrganization(ctx context.Context, actor Actor, id string) (keyIDs []string, err error) {
	err = l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		switch {
		case actor.Role != Operator:
			return ErrDenied
		case actor.OrganizationID == id:
			return &StateError{Subject: "organization " + id, State: "the one that this key belongs to",
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
		org.DeletedAt = tx.now()
		tx.change.Organizations = append(tx.change.Organizations, org)
		tx.addEvent(Event{OrganizationID: id, Type: "organization.deleted", Subject: id, Message: org.Name})
		return keepOperator(tx)
	})
	return keyIDs, err
}

// organizationInUse reports what is live of a locked organization.
func organizationInUse(tx *groupTx, org Organization) error {
	s, live, page := Scope{OrganizationID: org.ID}, BookingFilter{Live: true}, Page{Limit: 500}
	var in remains
	reservations, err := tx.port.Reservations(s, live, page)
	if err != nil {
		return fmt.Errorf("listing reservations: %w", err)
	}
	in.addRemaining("reservations", idsOf(reservations, func(r reservation.Reservation) string { return r.ID }))
	allocations, err := tx.port.Allocations(s, live, page)
	if err != nil {
		return fmt.Errorf("listing allocations: %w", err)
	}
	in.addRemaining("allocations", idsOf(allocations, func(a allocation.Allocation) string { return a.ID }))
	schedules, err := liveSchedules(tx, s, func(Schedule) bool { return true })
	if err != nil {
		return err
	}
	in.addRemaining("schedules", schedules)
	return in.inUseError("organization " + org.Name)
}

// leaveCohort refuses to take an organization out of its cohort while others are
// promised what they borrow from it.
func leaveCohort(tx *groupTx, t *tenants, id string) error {
	if t.organizations[id].Limits.Cohort == "" {
		return nil
	}
	if err := gatherPromises(tx, t); err != nil {
		return err
	}
	before := t.beyondLimits()
	delete(t.organizations, id)
	broken := slices.DeleteFunc(t.beyondLimits(), func(p AtRisk) bool {
		return slices.ContainsFunc(before, func(o AtRisk) bool { return o.ID == p.ID })
	})
	if len(broken) > 0 {
		return &PromisesAtRiskError{Promises: broken}
	}
	return nil
}

// endMembers deletes an organization's people and revokes its keys, whose ids it
// returns.
func endMembers(tx *groupTx, org Organization) ([]string, error) {
	for after := ""; ; {
		page, err := tx.port.Users(Scope{OrganizationID: org.ID}, Page{After: after, Limit: 500})
		if err != nil {
			return nil, fmt.Errorf("listing users: %w", err)
		}
		if len(page) == 0 {
			return endKeys(tx, org.ID, func(Key) bool { return true })
		}
		for _, user := range page {
			after = user.ID
			endUser(tx, user)
		}
	}
}

func endUser(tx *groupTx, user User) {
	user.DeletedAt, user.Active = tx.now(), false
	tx.change.Users = append(tx.change.Users, user)
	tx.addEvent(Event{OrganizationID: user.OrganizationID, Type: "user.deleted", Subject: user.ID,
		Message: string(user.Role)})
}

// endKeys revokes the keys of an organization for which a condition holds and
// returns their ids.
func endKeys(tx *groupTx, organizationID string, condition func(Key) bool) ([]string, error) {
	var ended []string
	for after := ""; ; {
		page, err := tx.port.Keys(Scope{OrganizationID: organizationID}, KeyFilter{}, Page{After: after, Limit: 500})
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

func revokeKey(tx *groupTx, k Key) Key {
	k.RevokedAt = tx.now()
	tx.change.Keys = append(tx.change.Keys, k)
	tx.addEvent(Event{OrganizationID: k.OrganizationID, Type: "key.revoked", Subject: k.ID, Message: k.Name})
	return k
}

// endPause ends the pause of an organization, if there is one.
func endPause(tx *groupTx, organizationID string) error {
	paused, err := readPauses(tx)
	if err != nil {
		return err
	}
	if p, ok := paused[organizationID]; ok {
		p.Until = tx.now()
		tx.change.Pauses = append(tx.change.Pauses, p)
	}
	return nil
}

// DeleteUser ends a person of an organization that the actor administers. Their
// keys end with them, which are returned; what these booked stays the
// organization's.
func (l Tenancy) DeleteUser(ctx context.Context, actor Actor, id string) (keyIDs []string, err error) {
	err = l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		user, err := LiveUser(tx.port, actor.Scope(), id)
		if err != nil {
			return err
		}
		if err := actor.checkAdministers(user.OrganizationID); err != nil {
			return err
		}
		if !actor.AtLeast(user.Role) {
			return ErrDenied
		}
		if user.Role == Operator {
			if err := lockOperators(tx); err != nil {
				return err
			}
		}
		if keyIDs, err = endKeys(tx, user.OrganizationID, func(k Key) bool { return k.UserID == id }); err != nil {
			return err
		}
		endUser(tx, user)
		if user.Role == Operator {
			return keepOperator(tx)
		}
		return nil
	})
	return keyIDs, err
}
