package sqlledger

import (
	"slices"

	"github.com/forewarm/forewarm/ledger"
)

// liveCommitments is what an organization was committed to when the pools were as they
// were then.
type liveCommitments struct {
	pools []poolMark
	from  int64 // from when on spending counted
	sums  ledger.Commitments
}

func (l *liveStates) findCommitments(organizationID string) (liveCommitments, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.committed[organizationID]
	return c, ok
}

func (l *liveStates) keepCommitments(organizationID string, c liveCommitments) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.committed == nil || len(l.committed) >= keepCommitted {
		l.committed = map[string]liveCommitments{}
	}
	l.committed[organizationID] = c
}

// keepCommitted bounds the organizations whose commitments are remembered: one of 10,000
// bookings takes some megabytes.
const keepCommitted = 64

// LiveCommitments adds up what is remembered of all pools, and only when one of them has
// changed.
func (r bookingReader) LiveCommitments(organizationID string) (ledger.Commitments, error) {
	if !r.isSnapshot {
		return r.Commitments(organizationID)
	}
	pools, err := capacityReader(r).findLivePools("")
	if err != nil {
		return ledger.Commitments{}, err
	}
	c := liveCommitments{pools: marksOf(pools), from: countedSince(pools, r.monthStart())}
	known, ok := r.store.live.findCommitments(organizationID)
	if ok && known.from == c.from && slices.Equal(known.pools, c.pools) {
		return known.sums, nil
	}
	for i := range pools {
		if err := capacityReader(r).ensureSpent(&pools[i], c.from); err != nil {
			return ledger.Commitments{}, wrapError("adding up what was spent", err)
		}
		pools[i].addTo(&c.sums, organizationID, c.from)
	}
	r.store.live.keepCommitments(organizationID, c)
	return c.sums, nil
}

func marksOf(pools []livePool) []poolMark {
	marks := make([]poolMark, len(pools))
	for i := range pools {
		marks[i] = markOf(&pools[i].state.Pool)
	}
	return marks
}

// countedSince is countedFrom of what is live in all pools.
func countedSince(pools []livePool, month int64) int64 {
	began := month
	for i := range pools {
		for j := range pools[i].state.Reservations {
			began = min(began, toMicros(pools[i].state.Reservations[j].Window.Start))
		}
		for j := range pools[i].state.Allocations {
			if a := &pools[i].state.Allocations[j]; !a.Observed() {
				began = min(began, toMicros(a.Window.Start))
			}
		}
	}
	if began == month {
		return month
	}
	const days = 31 // cover the rest of any month
	return (began/dayMicros - days) * dayMicros
}

// ensureSpent has a pool know what its ended bookings have spent, from a day on.
func (r capacityReader) ensureSpent(p *livePool, from int64) (err error) {
	if p.spent != nil && p.spent.from <= from {
		return nil
	}
	if p.spent, err = r.readSpent(p.state.Pool.ID, from); err == nil {
		r.remember(*p)
	}
	return err
}

// addTo adds an organization's part of a pool to what it is committed to.
func (p *livePool) addTo(c *ledger.Commitments, organizationID string, from int64) {
	for i := range p.state.Reservations {
		if r := &p.state.Reservations[i]; r.OrganizationID == organizationID && r.Placed() {
			c.Reservation(p.state.Pool.Pool, r, false)
		}
	}
	for i := range p.state.Allocations {
		if a := &p.state.Allocations[i]; a.OrganizationID == organizationID {
			c.Allocation(p.state.Pool.Pool, a, false)
		}
	}
	for key, row := range p.spent.sums {
		if key.organization == organizationID && key.day*dayMicros >= from {
			c.Spend(row.toSpend(p.state.Pool))
		}
	}
}
