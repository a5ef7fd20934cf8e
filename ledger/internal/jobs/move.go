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
		if err := move(ctx, l, j, to, "which has nodes for it: pool %s has not"); err != nil {
			return err
		}
	}
	return nil
}

// displaced are the jobs of a queue that had GPUs there, of which a silent daemon never heard, and that may wait in
// other pools.
func (q queue) displaced() (all []job.Job) {
	for _, id := range q.order {
		if j := q.jobs[id]; j.Reason == ledger.WaitsForDaemon && len(j.Where.Pools) > 1 && len(all) < movedAtOnce {
			all = append(all, j)
		}
	}
	return all
}

// moveDisplaced has those jobs wait in another pool that got no other GPUs in theirs, where they would get some there.
func moveDisplaced(ctx context.Context, l Jobs, q queue) error {
	for _, j := range q.displaced() {
		for _, id := range j.Where.Pools {
			if id == j.PoolID {
				continue
			}
			there := j
			there.PoolID = id
			begins, err := wouldBegin(ctx, l, there)
			if err != nil {
				return err
			}
			if begins {
				if err := move(ctx, l, j, id, "where it can begin: in pool %s no other GPUs are free"); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// wouldBegin reports whether a job would get GPUs in its pool now, on nodes whose daemons are there.
func wouldBegin(ctx context.Context, l Jobs, j job.Job) (begins bool, err error) {
	var served bool
	err = l.Store.Read(ctx, func(r ledger.Reader) (err error) {
		served, err = servedIn(r, j)
		return err
	})
	if err != nil || !served {
		return false, err
	}
	err = tryJob(ctx, l, j)
	switch {
	case errors.Is(err, errServed):
		return true, nil
	case errors.Is(err, errKeyOver) || isRefusal(err):
		return false, nil
	}
	return false, fmt.Errorf("asking pool %s for GPUs of job %s: %w", j.PoolID, j.ID, err)
}

// servedIn reports whether a job's pool is there, and has nodes for it, with daemons.
func servedIn(r ledger.Reader, j job.Job) (bool, error) {
	p, err := r.Pool(j.PoolID)
	if err != nil || !p.DeletedAt.IsZero() || p.Recovery.Active() {
		return false, ledger.IgnoreMissing(err)
	}
	q, err := readAround(r, j)
	if err != nil {
		return false, err
	}
	is, needed, known := q.usableBy(j)
	return known && is.served >= needed, nil
}

// findBetterPool returns the first of a job's pools that has nodes for it, with daemons; empty: none has.
func findBetterPool(r ledger.Reader, j job.Job) (string, error) {
	for _, id := range j.Where.Pools {
		if id == j.PoolID {
			continue
		}
		there := j
		there.PoolID = id
		if served, err := servedIn(r, there); err != nil || served {
			return id, err
		}
	}
	return "", nil
}

// move has a job wait in another pool, unless it does not wait any more where it did, or the pool has changed since it
// was submitted. why says what that pool has, and its own, which it names by %s, has not.
func move(ctx context.Context, l Jobs, j job.Job, to, why string) error {
	err := moveTo(ctx, l, j, to, why)
	if _, isInvalid := errors.AsType[*ledger.InvalidError](err); isInvalid || isRefusal(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("moving job %s to pool %s: %w", j.ID, to, err)
	}
	return nil
}

func moveTo(ctx context.Context, l Jobs, j job.Job, to, why string) error {
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
			Message: fmt.Sprintf("it waits in pool %s, "+why, p.Pool.Name, from.Pool.Name)})
		tx.WakePlan(to)
		tx.WakePlan(j.PoolID)
		return nil
	})
}
