package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// movedAtOnce bounds how many jobs move to other pools in one look at a queue.
const movedAtOnce = 100

// lacking are the jobs of a queue whose pool has too few nodes for them, or too few daemons, and that may wait in
// others.
func (q queue) lacking() (all []job.Job) {
	for _, w := range q.later {
		lacks := w.Code == ledger.WaitsForNodes || w.Code == ledger.WaitsForDaemon
		if lacks && len(w.Where.Pools) > 1 && len(all) < movedAtOnce {
			all = append(all, w.Job)
		}
	}
	return all
}

// moveLacking has jobs wait in another pool that has nodes for them, where their own has not.
func moveLacking(ctx context.Context, l Jobs, q queue) error {
	for _, j := range q.lacking() {
		var to string
		err := l.Store.Read(ctx, func(r ledger.Reader) (err error) {
			to, err = findBetterPool(r, j)
			return err
		})
		if err != nil {
			return fmt.Errorf("finding another pool for job %s: %w", j.ID, err)
		}
		if to == "" {
			continue
		}
		err = move(ctx, l, j, to)
		_, isInvalid := errors.AsType[*ledger.InvalidError](err) // the pool has changed since the job was submitted
		if err != nil && !isInvalid && !isRefusal(err) {
			return fmt.Errorf("moving job %s to pool %s: %w", j.ID, to, err)
		}
	}
	return nil
}

// findBetterPool returns the first of a job's pools that has nodes for it, with daemons; empty: none has.
func findBetterPool(r ledger.Reader, j job.Job) (string, error) {
	for _, id := range j.Where.Pools {
		if id == j.PoolID {
			continue
		}
		there := j
		there.PoolID = id
		p, err := r.Pool(id)
		if err != nil || !p.DeletedAt.IsZero() || p.Recovery.Active() {
			if ledger.IgnoreMissing(err) != nil {
				return "", err
			}
			continue
		}
		q, err := readAround(r, there)
		if err != nil {
			return "", err
		}
		if is, needed, known := q.usableBy(there); known && is.served >= needed {
			return id, nil
		}
	}
	return "", nil
}

// move has a job wait in another pool, unless it does not wait any more where it did.
func move(ctx context.Context, l Jobs, j job.Job, to string) error {
	return l.InOwnTx(ctx, ledger.SystemActor("scheduler"), func(tx *txn.Tx) error {
		for _, id := range slices.Sorted(slices.Values([]string{j.PoolID, to})) {
			if _, err := tx.LockPool(id); err != nil {
				return fmt.Errorf("locking pool: %w", err)
			}
		}
		is, err := txn.FindJob(tx, j.ID)
		if err != nil || is.State() != job.Pending || is.PoolID != j.PoolID {
			return err
		}
		p, from := tx.Pools[to], tx.Pools[j.PoolID]
		if err := booking.CheckPool(tx, p, is); err != nil {
			return txn.OnlyAsked(err)
		}
		is.PoolID = to
		txn.PutJob(tx, is)
		tx.AddEvent(ledger.Event{OrganizationID: is.OrganizationID, Type: "job.moved", Subject: is.ID, PoolID: to,
			Message: fmt.Sprintf("it waits in pool %s, which has nodes for it: pool %s has not", p.Pool.Name, from.Pool.Name)})
		tx.WakePlan(to)
		tx.WakePlan(j.PoolID)
		return nil
	})
}
