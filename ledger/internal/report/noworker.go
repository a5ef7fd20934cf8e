package report

import (
	"context"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
)

// blockWithoutWorker says that nothing happens for want of a worker, if that is so. Time
// alone does not clear it, so that no wait is estimated.
func (e *explained) blockWithoutWorker() (blocked bool) {
	if e.noWorker == nil {
		return false
	}
	e.Blockers, e.hopeless = append(e.Blockers, *e.noWorker), true
	return true
}

// needsWorker reports whether what a request would make is not there at once.
func needsWorker(e ledger.Effect) bool {
	for _, p := range e.Allocations {
		if p.Before == nil && p.After.State() == allocation.Pending {
			return true
		}
	}
	for _, p := range e.Reservations {
		if p.Before == nil && p.After.Live() {
			return true
		}
	}
	return false
}

// blockRequestWithoutWorker says of a request what it would wait for if no worker is there.
func (l Reporting) blockRequestWithoutWorker(ctx context.Context, actor ledger.Actor, e *ledger.Explanation) error {
	return l.Store.Read(ctx, func(r ledger.Reader) error {
		b, err := l.Waits(r).MissingWorker(actor.Role == ledger.Operator, e.At)
		if b != nil {
			e.Blockers = append(e.Blockers, *b)
		}
		return err
	})
}
