package tenancy

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
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// tenants are organizations that share a quota, locked, and what is promised to
// them.
type tenants struct {
	organizations map[string]ledger.Organization
	spent         map[string]*ledger.Commitments // by organization, without the promises
	promises      []promise                      // in the order in which limits are given to them
}

// promise is a booking as its organization's limits see it.
type promise struct {
	id, orgID, poolID string
	shape             capacity.Shape
	ask               quota.Ask
	rank              int // running work first, then guaranteed reservations, then speculative ones
	created           time.Time
}

// lockTenants locks an organization and all with whom it shares a cohort, now or
// once it is in another one; and others beside them, which are not returned.
func lockTenants(tx *txn.Tx, orgID, cohort string, beside ...string) (*tenants, error) {
	org, err := ledger.LiveOrganization(tx.Port, ledger.Scope{All: true}, orgID)
	if err != nil {
		return nil, err
	}
	ids, err := cohortMembers(tx, orgID, org.Limits.Cohort, cohort)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(ids, beside)
	slices.Sort(all)
	opened, err := tx.LockRows(ledger.LockRequest{Organizations: slices.Compact(all)})
	if err == nil {
		err = tx.AcceptLocked(opened)
	}
	if err != nil {
		return nil, fmt.Errorf("locking organizations: %w", err)
	}
	t := &tenants{organizations: map[string]ledger.Organization{}}
	for _, o := range opened.Organizations {
		if slices.Contains(ids, o.ID) {
			t.organizations[o.ID] = o
		}
	}
	again, err := cohortMembers(tx, orgID, t.organizations[orgID].Limits.Cohort, cohort)
	if err == nil && !slices.Equal(ids, again) {
		err = fmt.Errorf("the cohort of %s: %w", orgID, ledger.ErrConflict)
	}
	return t, err
}

// LockSharers locks an organization with all of its cohort, and returns it and
// the others.
func LockSharers(tx *txn.Tx, orgID string) (ledger.Organization, []ledger.Organization, error) {
	if org, ok := tx.Organizations[orgID]; ok && (org.Limits.Cohort == "" || tx.WholeCohorts[org.Limits.Cohort]) {
		return org, othersOf(tx, org), nil
	}
	if tx.Grouped {
		tx.NeedsOwnTx = true
		return ledger.Organization{}, nil, txn.ErrNeedsOwnTx
	}
	t, err := lockTenants(tx, orgID, "")
	if err != nil {
		return ledger.Organization{}, nil, err
	}
	org := t.organizations[orgID]
	if tx.WholeCohorts == nil {
		tx.WholeCohorts = map[string]bool{}
	}
	tx.WholeCohorts[org.Limits.Cohort] = true
	return org, othersOf(tx, org), nil
}

// othersOf lists the locked organizations of the same cohort, in the order of
// their ids.
func othersOf(tx *txn.Tx, org ledger.Organization) []ledger.Organization {
	if org.Limits.Cohort == "" {
		return nil
	}
	var others []ledger.Organization
	for _, id := range txn.SortedKeys(tx.Organizations) {
		if o := tx.Organizations[id]; id != org.ID && o.Limits.Cohort == org.Limits.Cohort {
			others = append(others, o)
		}
	}
	return others
}

// cohortMembers lists an organization and the members of cohorts, in the order of
// their ids.
func cohortMembers(tx *txn.Tx, orgID string, cohorts ...string) ([]string, error) {
	ids := []string{orgID}
	for _, name := range cohorts {
		if name == "" {
			continue
		}
		members, err := tx.Port.Cohort(name)
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
func gatherPromises(tx *txn.Tx, t *tenants) error {
	t.spent = map[string]*ledger.Commitments{}
	where := map[string]bool{}
	for _, id := range txn.SortedKeys(t.organizations) {
		c, err := tx.Port.Commitments(id)
		if err != nil {
			return fmt.Errorf("reading commitments: %w", err)
		}
		t.spent[id] = &c
		if err := errors.Join(reservedIn(tx, id, where), allocatedIn(tx, id, where)); err != nil {
			return err
		}
	}
	for _, id := range txn.SortedKeys(where) {
		p, err := tx.LockPool(id)
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
func reservedIn(tx *txn.Tx, orgID string, where map[string]bool) error {
	for after := ""; ; {
		page, err := tx.Port.Reservations(ledger.Scope{OrganizationID: orgID}, ledger.BookingFilter{Live: true},
			ledger.Page{After: after, Limit: 500})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			where[r.PoolID], after = true, r.ID
		}
	}
}

// allocatedIn adds the pools in which an organization has live allocations.
func allocatedIn(tx *txn.Tx, orgID string, where map[string]bool) error {
	for after := ""; ; {
		page, err := tx.Port.Allocations(ledger.Scope{OrganizationID: orgID}, ledger.BookingFilter{Live: true},
			ledger.Page{After: after, Limit: 500})
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
func (t *tenants) gatherIn(p *txn.PoolTx) {
	for r := range p.Reservations.All() {
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
	for a := range p.Allocations.All() {
		if t.spent[a.OrganizationID] == nil || !a.Live() {
			continue
		}
		one := promise{id: a.ID, orgID: a.OrganizationID, poolID: a.PoolID, shape: a.Shape,
			ask: allocationAsk(p.Pool.Pool, &a), created: a.EnteredAt()}
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
	return quota.Ask{Window: r.Window, Demand: quota.Demand(p, r.Shape), Spend: ledger.ReservationSpend(r),
		Speculative: r.Class == reservation.Speculative}
}

// allocationAsk is what an allocation that is not over counts against limits.
func allocationAsk(p capacity.Pool, a *allocation.Allocation) quota.Ask {
	return quota.Ask{Window: a.Window, Demand: quota.Demand(p, a.Shape), Spend: ledger.AllocationSpend(p, a)}
}

// beyondLimits lists the promises that the limits as they are now do not allow, when
// they are given out in order. What is refused takes nothing from the next.
func (t *tenants) beyondLimits() []ledger.AtRisk {
	var found []ledger.AtRisk
	var counted []promise
	holdings := map[string]quota.Holdings{}
	for id := range t.organizations {
		holdings[id] = t.holdingsOf(id)
	}
	for _, p := range t.promises {
		violations := quota.Measure(holdings[p.orgID], p.ask).Violations()
		if len(violations) > 0 {
			found = append(found, ledger.AtRisk{ID: p.id, OrganizationID: p.orgID, PoolID: p.poolID, Shape: p.shape,
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
	for _, other := range txn.SortedKeys(t.organizations) {
		if o := t.organizations[other]; other != id && o.Limits.Cohort == limits.Cohort {
			h.Cohort = append(h.Cohort, quota.Member{Limits: o.Limits, Committed: &t.spent[other].All})
		}
	}
	return h
}
