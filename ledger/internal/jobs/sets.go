package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/job"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/tenancy"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// CancelJobs is CancelJob of the next jobs of a set, in one transaction: Next says whether others are left. The same
// holds for its siblings. ErrNotFound: the actor sees no such array.
func (l Jobs) CancelJobs(ctx context.Context, actor ledger.Actor, s ledger.JobSet) (ledger.JobsChanged, error) {
	return l.changeSet(ctx, actor, s, toCancel)
}

// HoldJobs is HoldJob of the next jobs of a set.
func (l Jobs) HoldJobs(ctx context.Context, actor ledger.Actor, s ledger.JobSet) (ledger.JobsChanged, error) {
	return l.changeSet(ctx, actor, s, toHold)
}

// ReleaseJobs is ReleaseJob of the next jobs of a set.
func (l Jobs) ReleaseJobs(ctx context.Context, actor ledger.Actor, s ledger.JobSet) (ledger.JobsChanged, error) {
	return l.changeSet(ctx, actor, s, toRelease)
}

// RequeueJobs is RequeueJob of the next jobs of a set.
func (l Jobs) RequeueJobs(ctx context.Context, actor ledger.Actor, s ledger.JobSet) (ledger.JobsChanged, error) {
	return l.changeSet(ctx, actor, s, toRequeue)
}

// ShelveJobs is ShelveJob of the next jobs of a set.
func (l Jobs) ShelveJobs(ctx context.Context, actor ledger.Actor, s ledger.JobSet) (ledger.JobsChanged, error) {
	return l.changeSet(ctx, actor, s, toShelve)
}

func (l Jobs) changeSet(ctx context.Context, actor ledger.Actor, s ledger.JobSet, a ask) (
	out ledger.JobsChanged, err error) {
	if err := s.Check(); err != nil {
		return out, err
	}
	err = l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		out = ledger.JobsChanged{}
		if s.After == "" {
			if err := countOthers(tx, s, a, &out); err != nil {
				return err
			}
		}
		return changeNext(tx, s, a, &out)
	})
	return out, err
}

// countOthers counts the jobs of a set to which nothing is to be done. Of somebody's jobs those that are over do not
// count: there may be very many.
func countOthers(tx *txn.Tx, s ledger.JobSet, a ask, out *ledger.JobsChanged) error {
	f := s.FilterFor(tx.Actor)
	f.State, f.Live = s.State, s.Mine && len(s.State) == 0
	counts, err := tx.Port.CountJobs(tx.Actor.Scope(), f)
	if err != nil {
		return err
	}
	for state, n := range counts {
		if !a.isPossible(state) {
			out.Unchanged += n
		}
	}
	if s.ArrayID == "" || len(counts) > 0 {
		return nil
	}
	own, err := isOwn(tx, s.ArrayID) // perhaps none of its jobs is in such a state
	if err == nil && !own {
		err = fmt.Errorf("reading array %s: %w", s.ArrayID, ledger.ErrNotFound)
	}
	return err
}

// changeNext changes the next jobs of a set, under the locks of their pools.
func changeNext(tx *txn.Tx, s ledger.JobSet, a ask, out *ledger.JobsChanged) error {
	f := s.FilterFor(tx.Actor)
	if f.State = a.statesOf(s); len(f.State) == 0 {
		return nil
	}
	some, err := tx.Port.Jobs(tx.Actor.Scope(), f, ledger.Page{After: s.After, Limit: ledger.MostJobsAtOnce})
	if err != nil {
		return fmt.Errorf("reading a set of jobs: %w", err)
	}
	if a.edit != nil {
		if *a.may, err = readBounds(tx, some, *a.edit); err != nil {
			return err
		}
	}
	pools, err := lockPoolsOf(tx, some, a.edit)
	if err != nil {
		return err
	}
	for _, j := range some {
		if err := changeOne(tx, pools[j.PoolID], j.ID, f.State, a, out); err != nil {
			return err
		}
	}
	if len(some) == ledger.MostJobsAtOnce {
		out.Next = some[len(some)-1].ID
	}
	return nil
}

// lockPoolsOf locks the pools of jobs, and that in which an edit has them wait, always in the same order.
func lockPoolsOf(tx *txn.Tx, some []job.Job, e *ledger.JobEdit) (map[string]*txn.PoolTx, error) {
	all := map[string]*txn.PoolTx{}
	for _, j := range some {
		all[j.PoolID] = nil
	}
	if e != nil && e.Pool != nil {
		to, err := tx.Port.Pool(*e.Pool)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil, tenancy.ErrNoSuchPool(*e.Pool)
		}
		if err != nil {
			return nil, fmt.Errorf("reading pool %s: %w", *e.Pool, err)
		}
		all[to.ID] = nil
	}
	for _, id := range txn.SortedKeys(all) {
		p, err := tx.LockPool(id)
		if err != nil {
			return nil, fmt.Errorf("locking pool: %w", err)
		}
		all[id] = p
	}
	return all, nil
}

// changeOne changes a job, unless it has left the states in which it was to be changed. A refusal undoes what was done
// to this job alone.
func changeOne(tx *txn.Tx, p *txn.PoolTx, id string, states []string, a ask, out *ledger.JobsChanged) error {
	j, err := txn.FindJob(tx, id)
	if err != nil {
		return err
	}
	if !slices.Contains(states, string(j.State())) || a.isAsked(p, j) {
		out.Unchanged++
		return nil
	}
	err = tx.RunVerb(tx.Actor, func(tx *txn.Tx) error { return a.doTo(tx, p, j) })
	if refused, ok := errors.AsType[*ledger.StateError](err); ok {
		out.Refuse(j, refused)
		return nil
	}
	if err == nil {
		out.Changed++
	}
	return err
}
