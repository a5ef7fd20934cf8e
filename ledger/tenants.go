package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// tenants are organizations that share a quota, locked, and what is promised to
// them.
type tenants struct {
	organizations map[string]Organization
	spent         map[string]*Commitments // by organization, without the promises
	promises      []promise               // in the order in which limits are given to them
}

// promise is a booking as its organization's limits see it.
type promise struct {
	id, orgID, poolID string
	shape             capacity.Shape
	ask               quota.Ask
	rank              int // running work first, then guaranteed reservations, then guesses
	created           time.Time
}

// lockTenants locks an organization and all with whom it shares a cohort, now or
// once it is in another one; and others beside them, which are not returned.
func lockTenants(tx *groupTx, orgID, cohort string, beside ...string) (*tenants, error) {
	org, err := LiveOrganization(tx.port, Scope{All: true}, orgID)
	if err != nil {
		return nil, err
	}
	ids, err := cohortMembers(tx, orgID, org.Limits.Cohort, cohort)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(ids, beside)
	slices.Sort(all)
	opened, err := tx.lockRows(LockRequest{Organizations: slices.Compact(all)})
	if err == nil {
		err = tx.acceptLocked(opened)
	}
	if err != nil {
		return nil, fmt.Errorf("locking organizations: %w", err)
	}
	t := &tenants{organizations: map[string]Organization{}}
	for _, o := range opened.Organizations {
		if slices.Contains(ids, o.ID) {
			t.organizations[o.ID] = o
		}
	}
	again, err := cohortMembers(tx, orgID, t.organizations[orgID].Limits.Cohort, cohort)
	if err == nil && !slices.Equal(ids, again) {
		err = fmt.Errorf("the cohort of %s: %w", orgID, ErrConflict)
	}
	return t, err
}

// lockSharers locks an organization with all of its cohort, and returns it and
// the others.
func lockSharers(tx *groupTx, orgID string) (Organization, []Organization, error) {
	if org, ok := tx.orgs[orgID]; ok && (org.Limits.Cohort == "" || tx.whole[org.Limits.Cohort]) {
		return org, othersOf(tx, org), nil
	}
	if tx.grouped {
		tx.needsOwnTx = true
		return Organization{}, nil, errNeedsOwnTx
	}
	t, err := lockTenants(tx, orgID, "")
	if err != nil {
		return Organization{}, nil, err
	}
	org := t.organizations[orgID]
	if tx.whole == nil {
		tx.whole = map[string]bool{}
	}
	tx.whole[org.Limits.Cohort] = true
	return org, othersOf(tx, org), nil
}

// othersOf lists the locked organizations of the same cohort, in the order of
// their ids.
func othersOf(tx *groupTx, org Organization) []Organization {
	if org.Limits.Cohort == "" {
		return nil
	}
	var others []Organization
	for _, id := range sortedKeys(tx.orgs) {
		if o := tx.orgs[id]; id != org.ID && o.Limits.Cohort == org.Limits.Cohort {
			others = append(others, o)
		}
	}
	return others
}

// cohortMembers lists an organization and the members of cohorts, in the order of
// their ids.
func cohortMembers(tx *groupTx, orgID string, cohorts ...string) ([]string, error) {
	ids := []string{orgID}
	for _, name := range cohorts {
		if name == "" {
			continue
		}
		members, err := tx.port.Cohort(name)
		if err != nil {
			return nil, fmt.Errorf("reading cohort: %w", err)
		}
		for _, m := range members {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// gatherPromises reads and locks what is live of the tenants.
func gatherPromises(tx *groupTx, t *tenants) error {
	t.spent = map[string]*Commitments{}
	where := map[string]bool{}
	for _, id := range sortedKeys(t.organizations) {
		c, err := tx.port.Commitments(id)
		if err != nil {
			return fmt.Errorf("reading commitments: %w", err)
		}
		t.spent[id] = &c
		if err := errors.Join(reservedIn(tx, id, where), allocatedIn(tx, id, where)); err != nil {
			return err
		}
	}
	for _, id := range sortedKeys(where) {
		p, err := tx.lockPool(id)
		if err != nil {
			return fmt.Errorf("locking pool: %w", err)
		}
		t.gatherIn(p)
	}
	slices.SortFunc(t.promises, func(a, b promise) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	return nil
}

// reservedIn adds the pools in which an organization has live reservations.
func reservedIn(tx *groupTx, orgID string, where map[string]bool) error {
	for after := ""; ; {
		page, err := tx.port.Reservations(Scope{OrganizationID: orgID}, BookingFilter{Live: true},
			Page{After: after, Limit: 500})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			where[r.PoolID], after = true, r.ID
		}
	}
}

// allocatedIn adds the pools in which an organization has live allocations.
func allocatedIn(tx *groupTx, orgID string, where map[string]bool) error {
	for after := ""; ; {
		page, err := tx.port.Allocations(Scope{OrganizationID: orgID}, BookingFilter{Live: true},
			Page{After: after, Limit: 500})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, a := range page {
			where[a.PoolID], after = true, a.ID
		}
	}
}

// gatherIn takes the tenants' bookings in a pool out of what is spent, into the
// list of promises.
func (t *tenants) gatherIn(p *poolTx) {
	for r := range p.reservations.allRows() {
		if t.spent[r.OrganizationID] == nil || !r.Placed() {
			continue
		}
		one := promise{id: r.ID, orgID: r.OrganizationID, poolID: r.PoolID, shape: r.Shape,
			ask: reservationAsk(p.Pool.Pool, &r), rank: 1, created: r.CreatedAt}
		if r.Class == reservation.Speculative {
			one.rank = 2
		}
		t.countPromise(one, -1)
		t.promises = append(t.promises, one)
	}
	for a := range p.allocations.allRows() {
		if t.spent[a.OrganizationID] == nil || !a.Live() {
			continue
		}
		one := promise{id: a.ID, orgID: a.OrganizationID, poolID: a.PoolID, shape: a.Shape,
			ask: allocationAsk(p.Pool.Pool, &a), created: a.RequestedAt}
		t.countPromise(one, -1)
		t.promises = append(t.promises, one)
	}
}

// countPromise adds a promise to what its organization has committed, or with sign -1
// takes it out.
func (t *tenants) countPromise(p promise, sign int) {
	c := t.spent[p.orgID]
	sums := []*quota.Commitments{&c.All}
	if p.ask.Speculative {
		sums = append(sums, &c.Speculative)
	}
	for _, sum := range sums {
		if sign > 0 {
			sum.Add(p.ask.Window, p.ask.Demand, p.ask.Spend)
		} else {
			sum.Remove(p.ask.Window, p.ask.Demand, p.ask.Spend)
		}
	}
}

// reservationAsk is what a reservation that has a place counts against limits.
func reservationAsk(p capacity.Pool, r *reservation.Reservation) quota.Ask {
	return quota.Ask{Window: r.Window, Demand: quota.Demand(p, r.Shape), Spend: reservationSpend(r),
		Speculative: r.Class == reservation.Speculative}
}

// allocationAsk is what an allocation that is not over counts against limits.
func allocationAsk(p capacity.Pool, a *allocation.Allocation) quota.Ask {
	return quota.Ask{Window: a.Window, Demand: quota.Demand(p, a.Shape), Spend: allocationSpend(p, a)}
}

// beyondLimits lists the promises that the limits as they are now do not allow, when
// they are given out in order. What is refused takes nothing from the next.
func (t *tenants) beyondLimits() []AtRisk {
	var found []AtRisk
	var counted []promise
	holdings := map[string]quota.Holdings{}
	for id := range t.organizations {
		holdings[id] = t.holdingsOf(id)
	}
	for _, p := range t.promises {
		violations := quota.Measure(holdings[p.orgID], p.ask).Violations()
		if len(violations) > 0 {
			found = append(found, AtRisk{ID: p.id, OrganizationID: p.orgID, PoolID: p.poolID, Shape: p.shape,
				Window: p.ask.Window, Violations: violations})
			continue
		}
		t.countPromise(p, 1)
		counted = append(counted, p)
	}
	for _, p := range counted {
		t.countPromise(p, -1)
	}
	return found
}

// holdingsOf is an organization with the others of its cohort.
func (t *tenants) holdingsOf(id string) quota.Holdings {
	limits := t.organizations[id].Limits
	h := quota.Holdings{Limits: limits, Committed: &t.spent[id].All, Speculative: &t.spent[id].Speculative}
	if limits.Cohort == "" {
		return h
	}
	for _, other := range sortedKeys(t.organizations) {
		if o := t.organizations[other]; other != id && o.Limits.Cohort == limits.Cohort {
			h.Cohort = append(h.Cohort, quota.Member{Limits: o.Limits, Committed: &t.spent[other].All})
		}
	}
	return h
}
