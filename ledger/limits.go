package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/quota"
)

// ReasonQuotaReduced is why a promise is degraded that new limits do not allow.
const ReasonQuotaReduced = "quota_reduced"

// AtRisk is a promise that limits do not allow, or that a smaller pool has no
// place for.
type AtRisk struct {
	ID             string // of a reservation or an allocation
	OrganizationID string
	PoolID         string
	Shape          capacity.Shape
	Window         calendar.Interval
	Violations     []quota.Violation
	Lost           []admission.Reason // why it would have no place
}

// PromisesAtRiskError says that limits were not changed, or a pool was not made
// smaller, because of the promises that this would break.
type PromisesAtRiskError struct {
	Pool     string // its name; empty: limits
	Promises []AtRisk
}

// Error says how many there are.
func (e *PromisesAtRiskError) Error() string {
	if e.Pool != "" {
		return fmt.Sprintf("%s would have no place any more in pool %s", phrase.Count(len(e.Promises), "promise"), e.Pool)
	}
	return fmt.Sprintf("%s would be beyond the new limits", phrase.Count(len(e.Promises), "promise"))
}

// LimitsChange is what a change of limits did.
type LimitsChange struct {
	Organization Organization
	Degraded     []AtRisk // promises that the new limits do not allow, and the old ones did
	Restored     []string // reservations that are within the limits again
}

// SetLimits changes an organization's limits at once. Where the new ones do not
// allow everything that is promised, to it or to others of its cohort, nothing
// is changed and the error is *PromisesAtRiskError; with force the promises
// beyond the limits are kept, marked degraded and named. ErrConflict means that
// version is not the current one.
func (l Tenancy) SetLimits(ctx context.Context, actor Actor, orgID string, version int, limits quota.Limits,
	force bool) (LimitsChange, error) {
	var out LimitsChange
	limits = withDefaultLimits(limits)
	if err := checkLimits(limits); err != nil {
		return out, err
	}
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if actor.Role != Operator {
			return ErrDenied
		}
		t, err := lockTenants(tx, orgID, limits.Cohort)
		if err != nil {
			return err
		}
		org := t.organizations[orgID]
		if org.Version != version {
			return ErrConflict
		}
		out, err = setLimits(tx, t, org, limits, force)
		return err
	})
	return out, err
}

func setLimits(tx *groupTx, t *tenants, org Organization, limits quota.Limits, force bool) (LimitsChange, error) {
	if err := gatherPromises(tx, t); err != nil {
		return LimitsChange{}, err
	}
	before := t.beyondLimits()
	org.Limits = limits
	t.organizations[org.ID] = org
	after := t.beyondLimits()
	out := LimitsChange{Organization: org}
	for _, p := range after {
		if !slices.ContainsFunc(before, func(o AtRisk) bool { return o.ID == p.ID }) {
			out.Degraded = append(out.Degraded, p)
		}
	}
	if len(out.Degraded) > 0 && !force {
		return LimitsChange{}, &PromisesAtRiskError{Promises: out.Degraded}
	}
	tx.change.Organizations = append(tx.change.Organizations, org)
	tx.addEvent(Event{OrganizationID: org.ID, Type: "organization.limited", Subject: org.ID,
		Message: fmt.Sprintf("%s, %s of speculation a day", phrase.Count(limits.GPUs, "GPU"), limits.SpeculationPerDay)})
	for _, p := range out.Degraded {
		degradeBeyond(tx, p)
	}
	out.Restored = restoreWithin(tx, t, after)
	out.Organization.Version++
	return out, nil
}

// degradeBeyond marks a promise that new limits do not allow. An allocation
// keeps what it holds: the event alone tells of it.
func degradeBeyond(tx *groupTx, a AtRisk) {
	p := tx.pools[a.PoolID]
	kind := "allocation.over_quota"
	if r, ok := p.findReservation(a.ID); ok {
		r.Degraded, r.Reason = true, ReasonQuotaReduced
		p.putReservation(r)
		kind = "reservation.degraded"
	}
	tx.addEvent(Event{OrganizationID: a.OrganizationID, Type: kind, Subject: a.ID, PoolID: a.PoolID,
		Reason:  ReasonQuotaReduced,
		Message: "beyond the quota: " + admission.LimitReasons(a.Violations)[0].Message})
}

// restoreWithin clears the mark of promises that are within the limits again.
func restoreWithin(tx *groupTx, t *tenants, beyond []AtRisk) []string {
	restored := []string{}
	for _, b := range t.promises {
		r, ok := tx.pools[b.poolID].findReservation(b.id)
		if !ok || !r.Degraded || r.Reason != ReasonQuotaReduced ||
			slices.ContainsFunc(beyond, func(o AtRisk) bool { return o.ID == b.id }) {
			continue
		}
		r.Degraded, r.Reason = false, ""
		tx.pools[b.poolID].putReservation(r)
		tx.addEvent(Event{OrganizationID: r.OrganizationID, Type: "reservation.restored", Subject: r.ID, PoolID: r.PoolID,
			Message: "within the quota again"})
		restored = append(restored, r.ID)
	}
	return restored
}

// Usage is what an organization holds and is promised, as its limits count it.
type Usage struct {
	Organization Organization
	At, Until    time.Time
	Now          quota.Vector
	Peak         quota.Vector // the most of each at any one instant from At to Until
	Period       quota.Spend  // of what starts in the present period
	Guessed      quota.Spend  // speculative, of what starts today
}

// Usage reads what a visible organization holds from now on for a while.
func (l Tenancy) Usage(ctx context.Context, actor Actor, orgID string, ahead time.Duration) (Usage, error) {
	var out Usage
	err := l.store.Read(ctx, func(r Reader) error {
		org, err := LiveOrganization(r, actor.Scope(), orgID)
		if err != nil {
			return err
		}
		c, err := r.Commitments(orgID)
		if err != nil {
			return fmt.Errorf("reading commitments: %w", err)
		}
		now := r.Now()
		until := now.Add(ahead)
		out = Usage{Organization: org, At: now, Until: until, Now: c.All.At(now),
			Peak:   c.All.Peak(calendar.Interval{Start: now, End: until}),
			Period: c.All.In(org.Limits.Period, now), Guessed: c.Speculative.On(now)}
		return nil
	})
	return out, err
}

// SetUserCaps changes what a person's keys may book, all together; zero caps are
// none. ErrConflict means that version is not the current one.
func (l Tenancy) SetUserCaps(ctx context.Context, actor Actor, id string, version int, caps quota.Caps) (User, error) {
	var user User
	if err := checkCaps(caps); err != nil {
		return user, err
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
		asker, err := confirmCredential(tx, actor)
		if err != nil {
			return err
		}
		if asker.ActsFor(id) && isLooser(caps, user.Caps) {
			return &InvalidError{Field: "caps", Rule: "must not be loosened with a key of the person whom they bind",
				Fix: "ask another admin, or an operator"}
		}
		if user.Version != version {
			return ErrConflict
		}
		user.Caps = caps
		tx.change.Users = append(tx.change.Users, user)
		message := "no caps"
		if caps != (quota.Caps{}) {
			message = fmt.Sprintf("%s, %s a day", phrase.Count(caps.MaxGPUs, "GPU"), caps.MaxPerDay)
		}
		tx.addEvent(Event{OrganizationID: user.OrganizationID, Type: "user.capped", Subject: user.ID, Message: message})
		return nil
	})
	user.Version++
	return user, err
}

// isLooser reports whether caps, of which zero is none, allow anything that those
// before did not.
func isLooser(caps, before quota.Caps) bool {
	return before != (quota.Caps{}) && (caps == (quota.Caps{}) || caps.Beyond(before) != "")
}

func checkCaps(c quota.Caps) error {
	if c.MaxGPUs < 0 || c.MaxPerDay < 0 || c.MaxLead < 0 || c.MaxWindow < 0 {
		return &InvalidError{Field: "caps", Rule: "must not be negative"}
	}
	return nil
}

// withDefaultLimits writes out what an organization's limits leave to their defaults.
func withDefaultLimits(l quota.Limits) quota.Limits {
	l.Period, l.Weight = cmp.Or(l.Period, quota.PerDay), cmp.Or(l.Weight, 1)
	return l
}

func checkLimits(l quota.Limits) error {
	switch {
	case l.GPUs < 0 || l.GPUs > MaxGPUs:
		return &InvalidError{Field: "max_gpus", Rule: fmt.Sprintf("must be between 0 and %d", MaxGPUs)}
	case l.SpeculationPerDay < 0:
		return &InvalidError{Field: "speculation_per_day", Rule: "must not be negative"}
	case l.Weight < 1 || l.Weight > maxWeight:
		return &InvalidError{Field: "weight", Rule: fmt.Sprintf("must be between 1 and %d", maxWeight)}
	case l.Period != quota.PerDay && l.Period != quota.PerMonth:
		return &InvalidError{Field: "period", Rule: "must be day or month"}
	case len(l.Cohort) > 63:
		return &InvalidError{Field: "cohort", Rule: "must be at most 63 characters"}
	case l.Cohort == "" && (l.Borrowing != quota.Bounds{} || l.Lending != quota.Bounds{}):
		return &InvalidError{Field: "cohort", Rule: "must be given with borrowing or lending"}
	}
	return nil
}

// maxWeight bounds how unequal fair shares may be made.
const maxWeight = 1000
