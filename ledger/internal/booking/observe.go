package booking

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Watch says what is to be looked at in a provisioner's cluster, and which of its nodes
// are to stay warm.
func (l Booking) Watch(ctx context.Context, provisioner string) (ledger.Watch, error) {
	var out ledger.Watch
	err := l.Store.Read(ctx, func(r ledger.Reader) error {
		pools, err := observedPools(r, provisioner)
		if err != nil || len(pools) == 0 {
			return err
		}
		seen, err := r.Watched(provisioner)
		if err != nil {
			return err
		}
		out.Wanted, out.Mark = true, seen.Mark
		for _, p := range pools {
			state, err := r.LiveState(p.ID)
			if err != nil {
				return fmt.Errorf("reading pool %s: %w", p.Name, err)
			}
			for _, n := range state.Nodes {
				if n.State() == node.Booting || n.State() == node.Ready {
					out.Warm = append(out.Warm, n.ProviderID)
				}
			}
		}
		return nil
	})
	return out, err
}

// observedPools lists the observed pools of a provisioner, in the order of their ids.
func observedPools(r ledger.Reader, provisioner string) ([]ledger.Pool, error) {
	all, err := r.Pools(ledger.Page{Limit: 500})
	if err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	return slices.DeleteFunc(all, func(p ledger.Pool) bool {
		return !p.Observed || p.Provisioner != provisioner || !p.DeletedAt.IsZero()
	}), nil
}

// ReportObserved commits what was observed, and has the cluster looked at again after
// the time between two looks. failure is what else went wrong with the look; empty for
// nothing. An observation that is reported twice changes nothing the second time.
func (l Booking) ReportObserved(ctx context.Context, g ledger.Guard, o ledger.Observation, failure string) (
	ledger.Observed, error) {
	var out ledger.Observed
	err := l.InOwnTx(ctx, ledger.SystemActor("observer"), func(tx *txn.Tx) error {
		out = ledger.Observed{}
		seen, err := tx.Port.Watched(o.Provisioner)
		if err != nil {
			return err
		}
		pools, err := observedPools(tx.Port, o.Provisioner)
		if err != nil {
			return err
		}
		for _, found := range pools {
			p, err := tx.LockPool(found.ID)
			if err != nil {
				return fmt.Errorf("locking pool: %w", err)
			}
			if err := observePool(tx, p, sight{Observation: o, now: tx.Now(), before: seen.At}, &out); err != nil {
				return fmt.Errorf("noting what runs in %s: %w", p.Pool.Name, err)
			}
		}
		seen.Provisioner, seen.Mark = o.Provisioner, o.Mark
		if o.Complete {
			seen.At = o.At
		}
		tx.Change.Watched = append(tx.Change.Watched, seen)
		tx.FailTask(g, tx.Now().Add(nextLook(l.Config.ObserveEvery, o.KeepWithin)), failure)
		return nil
	})
	return out, err
}

// leastBetween bounds how often a cluster is looked at, however soon it suspends nodes.
const leastBetween = time.Second

// nextLook is how long after a look the next one comes: well within the time in which
// warm nodes have to be kept again.
func nextLook(every, keepWithin time.Duration) time.Duration {
	if keepWithin > 0 {
		return min(every, max(keepWithin/2, leastBetween))
	}
	return every
}

// observePool brings a pool in line with what runs there.
func observePool(tx *txn.Tx, p *txn.PoolTx, o sight, out *ledger.Observed) error {
	work := map[string]ledger.ObservedWork{}
	for _, w := range o.Work {
		if w.Type == p.Pool.Type {
			work[w.ID] = w
		}
	}
	before := *out
	for _, a := range observedIn(p) {
		w, told := work[a.Work.ID]
		delete(work, a.Work.ID)
		if err := o.followWork(tx, p, a, w, told, out); err != nil {
			return err
		}
	}
	fresh, err := unknownWork(tx, p, work)
	if err != nil {
		return err
	}
	for _, w := range fresh {
		if err := o.addWork(tx, p, w, out); err != nil {
			return err
		}
	}
	if *out != before {
		tx.WakePlan(p.Pool.ID)
	}
	return nil
}

// observedIn lists the observed work that is not over in a pool, as far as is known.
func observedIn(p *txn.PoolTx) []allocation.Allocation {
	var found []allocation.Allocation
	for a := range p.Allocations.All() {
		if a.Observed() && a.Live() {
			found = append(found, a)
		}
	}
	return found
}

// unknownWork are the pieces of work that nothing is known of, in the order in which they
// began. What never began is nothing to count.
func unknownWork(tx *txn.Tx, p *txn.PoolTx, work map[string]ledger.ObservedWork) ([]ledger.ObservedWork, error) {
	if len(work) == 0 {
		return nil, nil
	}
	found, err := tx.Port.ObservedWork(p.Pool.ID, txn.SortedKeys(work))
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, id := range found {
		known[id] = true
	}
	var fresh []ledger.ObservedWork
	for _, id := range txn.SortedKeys(work) {
		w := work[id]
		if !known[id] && (w.EndedAt.IsZero() || !w.StartedAt.IsZero()) {
			fresh = append(fresh, w)
		}
	}
	slices.SortStableFunc(fresh, func(a, b ledger.ObservedWork) int { return a.StartedAt.Compare(b.StartedAt) })
	return fresh, nil
}

// sight is an observation, with when the cluster was looked at before.
type sight struct {
	ledger.Observation
	now    time.Time // by the database's clock
	before time.Time // of the last complete look, by the cluster's clock
}

// hereAt is a time of the cluster's clock by the database's. Nothing that was observed
// lies ahead.
func (o sight) hereAt(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return o.now.Add(-max(0, o.At.Sub(at)))
}
