package fleet

import (
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// settleWhere has jobs wait again that have not begun and may not run any more where they have a place: a node was
// replaced, or has other labels. It returns the allocations of those that must stay where they are.
func settleWhere(tx *txn.Tx, p *txn.PoolTx) (pinned map[string]bool, err error) {
	var waiting []allocation.Allocation
	var ids []string
	for a := range p.Allocations.All() {
		if a.JobID != "" && a.State() == allocation.Pending {
			waiting, ids = append(waiting, a), append(ids, a.JobID)
		}
	}
	if len(waiting) == 0 {
		return nil, nil //nolint:nilnil // none must
	}
	jobs, err := tx.Port.JobsByID(ids)
	if err != nil {
		return nil, fmt.Errorf("reading jobs that have a place: %w", err)
	}
	pinned = map[string]bool{}
	for _, a := range slices.Clone(waiting) {
		may, narrower, err := booking.MayStay(p, jobs[a.JobID], a.Slots)
		if err != nil {
			return nil, err
		}
		if pinned[a.ID] = narrower; !may {
			if err := putBack(tx, p, a); err != nil {
				return nil, err
			}
		}
	}
	return pinned, nil
}

// putBack has a job wait again that has a place and has not begun.
func putBack(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation) error {
	j, err := txn.FindJob(tx, a.JobID)
	if err != nil || j.State() != job.Scheduled || j.AllocationID != a.ID || j.Ending.Is() {
		return err
	}
	next, err := j.Apply(job.Requeue, ledger.WaitsForNodes, tx.Now())
	if err != nil {
		return fmt.Errorf("putting job %s back: %w", j.ID, err)
	}
	txn.NoteJob(tx, next, "it may not run any more where it had a place")
	return booking.ReleaseOfJob(tx, p, a.ID, "job_"+string(next.State()))
}
