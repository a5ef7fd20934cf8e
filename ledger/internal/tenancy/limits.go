package tenancy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// SetLimits changes an organization's limits at once. Where the new ones do not
// allow everything that is promised, to it or to others of its cohort, nothing
// is changed and the error is *PromisesAtRiskError; with force the promises
// beyond the limits are kept, marked degraded and named. ErrConflict means that
// version is not the current one.
func (l Tenancy) SetLimits(ctx context.Context, actor ledger.Actor, orgID string, version int, limits quota.Limits,
	force bool) (ledger.LimitsChange, error) {
	var out ledger.LimitsChange
	limits = withDefaultLimits(limits)
	if err := checkLimits(limits); err != nil {
		return out, err
	}
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		t, err := lockTenants(tx, orgID, limits.Cohort)
		if err != nil {
			return err
		}
		org := t.organizations[orgID]
		if org.Version != version {
			return ledger.ErrConflict
		}
		out, err = setLimits(tx, t, org, limits, force)
		return err
	})
	return out, err
}

func setLimits(tx *txn.Tx, t *tenants, org ledger.Organization, limits quota.Limits, force bool) (
	ledger.LimitsChange, error) {
	if err := gatherPromises(tx, t); err != nil {
		return ledger.LimitsChange{}, err
	}
	before := t.beyondLimits()
	org.Limits = limits
	t.organizations[org.ID] = org
	after := t.beyondLimits()
	out := ledger.LimitsChange{Organization: org}
	for _, p := range after {
		if !slices.ContainsFunc(before, func(o ledger.AtRisk) bool { return o.ID == p.ID }) {
			out.Degraded = append(out.Degraded, p)
		}
	}
	if len(out.Degraded) > 0 && !force {
		return ledger.LimitsChange{}, &ledger.PromisesAtRiskError{Promises: out.Degraded}
	}
	tx.Change.Organizations = append(tx.Change.Organizations, org)
	tx.AddEvent(ledger.Event{OrganizationID: org.ID, Type: "organization.limited", Subject: org.ID,
		Message: describeLimits(limits)})
	for _, p := range out.Degraded {
		degradeBeyond(tx, p)
	}
	out.Restored = restoreWithin(tx, t, after)
	out.Organization.Version++
	return out, nil
}

// degradeBeyond marks a promise that new limits do not allow. An allocation
// keeps what it holds: the event alone tells of it.
func degradeBeyond(tx *txn.Tx, a ledger.AtRisk) {
	p := tx.Pools[a.PoolID]
	kind := "allocation.over_quota"
	if r, ok := p.FindReservation(a.ID); ok {
		r.Degraded, r.Reason = true, ledger.ReasonQuotaReduced
		p.PutReservation(r)
		kind = "reservation.degraded"
	}
	tx.AddEvent(ledger.Event{OrganizationID: a.OrganizationID, Type: kind, Subject: a.ID, PoolID: a.PoolID,
		Reason:  ledger.ReasonQuotaReduced,
		Message: "beyond the quota: " + admission.LimitReasons(a.Violations)[0].Message})
}

// restoreWithin clears the mark of promises that are within the limits again.
func restoreWithin(tx *txn.Tx, t *tenants, beyond []ledger.AtRisk) []string {
	restored := []string{}
	for _, b := range t.promises {
		r, ok := tx.Pools[b.poolID].FindReservation(b.id)
		if !ok || !r.Degraded || r.Reason != ledger.ReasonQuotaReduced ||
			slices.ContainsFunc(beyond, func(o ledger.AtRisk) bool { return o.ID == b.id }) {
			continue
		}
		r.Degraded, r.Reason = false, ""
		tx.Pools[b.poolID].PutReservation(r)
		tx.AddEvent(ledger.Event{OrganizationID: r.OrganizationID, Type: "reservation.restored", Subject: r.ID,
			PoolID:  r.PoolID,
			Message: "within the quota again"})
		restored = append(restored, r.ID)
	}
	return restored
}

// Usage reads what a visible organization holds from now on for a while.
func (l Tenancy) Usage(ctx context.Context, actor ledger.Actor, orgID string, ahead time.Duration) (
	ledger.Usage, error) {
	var out ledger.Usage
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		org, err := ledger.LiveOrganization(r, actor.Scope(), orgID)
		if err != nil {
			return err
		}
		c, err := r.LiveCommitments(orgID)
		if err != nil {
			return fmt.Errorf("reading commitments: %w", err)
		}
		now := r.Now()
		until := now.Add(ahead)
		out = ledger.Usage{Organization: org, At: now, Until: until, Now: c.All.At(now),
			Peak:   c.All.Peak(calendar.Interval{Start: now, End: until}),
			Period: c.All.In(org.Limits.Period, now), Speculative: c.Speculative.On(now)}
		return nil
	})
	return out, err
}

// SetUserCaps changes what a person's keys may book, all together; zero caps are
// none. ErrConflict means that version is not the current one.
func (l Tenancy) SetUserCaps(ctx context.Context, actor ledger.Actor, id string, version int, caps quota.Caps) (
	ledger.User, error) {
	var user ledger.User
	if err := checkCaps(caps); err != nil {
		return user, err
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
		asker, err := confirmCredential(tx, actor)
		if err != nil {
			return err
		}
		if asker.ActsFor(id) && isLooser(caps, user.Caps) {
			return &ledger.InvalidError{Field: "caps",
				Rule: "must not be loosened with a key of the person they apply to",
				Fix:  "ask another admin, or an operator"}
		}
		if user.Version != version {
			return ledger.ErrConflict
		}
		user.Caps = caps
		tx.Change.Users = append(tx.Change.Users, user)
		message := "no caps"
		if caps != (quota.Caps{}) {
			message = fmt.Sprintf("%s, %s a day", phrase.Count(caps.MaxGPUs, "GPU"), caps.MaxPerDay)
		}
		tx.AddEvent(ledger.Event{OrganizationID: user.OrganizationID, Type: "user.capped", Subject: user.ID,
			Message: message})
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
		return &ledger.InvalidError{Field: "caps", Rule: "must not be negative"}
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
	case l.GPUs < 0 || l.GPUs > ledger.MaxGPUs:
		return &ledger.InvalidError{Field: "max_gpus", Rule: fmt.Sprintf("must be between 0 and %d", ledger.MaxGPUs)}
	case l.SpeculationPerDay < 0:
		return &ledger.InvalidError{Field: "speculation_per_day", Rule: "must not be negative"}
	case l.Weight < 1 || l.Weight > maxWeight:
		return &ledger.InvalidError{Field: "weight", Rule: fmt.Sprintf("must be between 1 and %d", maxWeight)}
	case l.Period != quota.PerDay && l.Period != quota.PerMonth:
		return &ledger.InvalidError{Field: "period", Rule: "must be day or month"}
	case len(l.Cohort) > 63:
		return &ledger.InvalidError{Field: "cohort", Rule: "must be at most 63 characters"}
	case l.Cohort == "" && (l.Borrowing != quota.Bounds{} || l.Lending != quota.Bounds{}):
		return &ledger.InvalidError{Field: "cohort", Rule: "must be given with borrowing or lending"}
	}
	return nil
}

// maxWeight bounds how unequal fair shares may be made.
const maxWeight = 1000
