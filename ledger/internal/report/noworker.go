package report

import (
	"context"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/outlook"
)

// describeMissingWorker is what it means that no worker is there; nil: one is. made is when
// what waits for one began to be there, which is said if no worker ever was.
func describeMissingWorker(waits *outlook.Waits, r ledger.Reader, operator bool, made time.Time) (
	*ledger.Blocker, error) {
	since, gone, err := waits.WorkersGone()
	if err != nil || !gone {
		return nil, err
	}
	b := ledger.Blocker{Code: ledger.CodeNoWorker}
	if since.IsZero() {
		since = made
	}
	b.Message = "no worker has been seen since " + ledger.FormatTimeSeen(since, r.Now()) +
		": nothing is made ready, cleaned or removed until one runs"
	if !operator {
		b.Message += "; ask an operator"
		return &b, nil
	}
	b.Fix = "forewarm worker"
	all, err := r.Workers()
	if err == nil && len(all) > 0 {
		b.Evidence = append(b.Evidence, "the last one ran on "+all[0].Host)
	}
	return &b, err
}

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
		b, err := describeMissingWorker(l.Waits(r), r, actor.Role == ledger.Operator, e.At)
		if b != nil {
			e.Blockers = append(e.Blockers, *b)
		}
		return err
	})
}
