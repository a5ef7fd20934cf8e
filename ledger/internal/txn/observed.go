package txn

import (
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
)

// LiveWork lists the observed work that is not over in a pool, as far as is known.
func LiveWork(p *PoolTx) []allocation.Allocation {
	var found []allocation.Allocation
	for a := range p.Allocations.All() {
		if a.Observed() && a.Live() {
			found = append(found, a)
		}
	}
	return found
}

// EndAllWork ends what runs in a pool that is watched no more, as far as anybody knows.
func EndAllWork(tx *Tx, p *PoolTx, at time.Time, reason, message string) error {
	return EndWork(tx, p, LiveWork(p), at, reason, message)
}

// EndWork ends some observed work, as far as anybody knows.
func EndWork(tx *Tx, p *PoolTx, work []allocation.Allocation, at time.Time, reason, message string) error {
	for _, a := range work {
		ended := at
		if ended.Before(a.ActiveAt) {
			ended = a.ActiveAt
		}
		if _, err := EndObserved(tx, p, a, ended, reason, a.Work.Label()+" "+message); err != nil {
			return err
		}
	}
	return nil
}

// StartObserved notes work that a cluster's scheduler placed, from when it began.
func StartObserved(tx *Tx, p *PoolTx, a allocation.Allocation, started time.Time, reason, message string) (
	allocation.Allocation, error) {
	return stepObserved(tx, p, a, allocation.Activate, started, reason, message)
}

// EndObserved ends observed work as of when it ended, or gave up waiting.
func EndObserved(tx *Tx, p *PoolTx, a allocation.Allocation, ended time.Time, reason, message string) (
	allocation.Allocation, error) {
	if a.State() == allocation.Pending {
		return stepObserved(tx, p, a, allocation.Cancel, ended, reason, message)
	}
	a, err := a.Apply(allocation.Release, reason, ended)
	if err != nil {
		return a, err
	}
	return stepObserved(tx, p, a, allocation.Finish, ended, reason, message)
}

// stepObserved moves observed work by an event. It is nobody's lease: nothing is
// charged for it and no length of leases is learned from it; what it costs is told from
// the nodes that it was on.
func stepObserved(tx *Tx, p *PoolTx, a allocation.Allocation, e allocation.Event, at time.Time, reason,
	message string) (allocation.Allocation, error) {
	next, err := a.Apply(e, reason, at)
	if err != nil {
		return a, err
	}
	p.PutAllocation(next)
	if next.State() == allocation.Active {
		countServed(tx, p, next)
	}
	tx.AddEvent(ledger.Event{OrganizationID: next.OrganizationID, Type: "allocation." + string(next.State()),
		Subject: next.ID, PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}
