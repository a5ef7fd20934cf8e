package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// BeginRecovery has pools only reconcile, until EndRecovery: those that have
// machines from the provisioner, or all if it is empty. Pools that do so already
// keep their reason; an operator's own is added to it. It returns how many pools it changed.
func (l Fleet) BeginRecovery(ctx context.Context, actor ledger.Actor, provisioner, reason string) (int, error) {
	return eachPool(ctx, l.Engine, actor, func(tx *txn.Tx, p *txn.PoolTx) bool {
		if provisioner != "" && !ledger.UsesProvisioner(p.Pool, provisioner) {
			return false
		}
		next := p.Pool
		if next.Recovery.Active() {
			return !actor.IsSystem() && addReason(tx, p, reason)
		}
		next.Recovery = ledger.Recovery{Since: tx.Now(), Reason: ledger.ClipText(reason, 200)}
		p.PutPool(next)
		tx.AddEvent(ledger.Event{Type: "pool.recovering", Subject: next.ID, PoolID: next.ID, Reason: "recovery",
			Message: fmt.Sprintf("%s only reconciles until an operator confirms: %s", next.Name, next.Recovery.Reason)})
		return true
	})
}

// mostReasons bounds what several reasons have together, in characters.
const mostReasons = 1000

// addReason adds why an operator wants a pool to recover that does so already. False: that was said.
func addReason(tx *txn.Tx, p *txn.PoolTx, reason string) bool {
	next, reason := p.Pool, ledger.ClipText(reason, 200)
	if strings.Contains("; "+next.Recovery.Reason+"; ", "; "+reason+"; ") {
		return false
	}
	next.Recovery.Reason = ledger.ClipText(next.Recovery.Reason+"; "+reason, mostReasons)
	p.PutPool(next)
	tx.AddEvent(ledger.Event{Type: "pool.recovering", Subject: next.ID, PoolID: next.ID, Reason: "recovery",
		Message: fmt.Sprintf("%s still only reconciles until an operator confirms, also for: %s", next.Name, reason)})
	return true
}

// EndRecovery has all pools work again on what the ledger knows now. What it
// found that no node stands for is then ended like any orphan. It returns how
// many pools were recovering. Only an operator may.
func (l Fleet) EndRecovery(ctx context.Context, actor ledger.Actor) (int, error) {
	return eachPool(ctx, l.Engine, actor, func(tx *txn.Tx, p *txn.PoolTx) bool {
		if !p.Pool.Recovery.Active() {
			return false
		}
		next := p.Pool
		next.Recovery = ledger.Recovery{}
		p.PutPool(next)
		tx.WakePlan(next.ID)
		tx.Wake = append(tx.Wake, ledger.Wakeup{Key: txn.SchedulesKey, At: tx.Now()})
		tx.AddEvent(ledger.Event{Type: "pool.recovered", Subject: next.ID, PoolID: next.ID, Reason: "confirmed",
			Message: next.Name + " works again: an operator confirmed what was found"})
		return true
	})
}

// eachPool changes pools in one transaction and counts those that changed.
func eachPool(ctx context.Context, l *txn.Engine, actor ledger.Actor, change func(tx *txn.Tx, p *txn.PoolTx) bool) (
	int, error) {
	changed := 0
	err := l.InOwnTx(ctx, actor, func(tx *txn.Tx) error {
		if actor.Role != ledger.Operator {
			return ledger.ErrDenied
		}
		changed = 0
		all, err := allPools(tx)
		if err != nil {
			return err
		}
		for _, id := range all {
			p, err := tx.LockPool(id)
			if err != nil {
				return fmt.Errorf("locking pool: %w", err)
			}
			if change(tx, p) {
				changed++
			}
		}
		return nil
	})
	return changed, err
}

// allPools are the ids of every pool, in the order of locks.
func allPools(tx *txn.Tx) ([]string, error) {
	var all []string
	for page := (ledger.Page{Limit: 500}); ; {
		pools, err := tx.Port.Pools(page)
		if err != nil {
			return nil, fmt.Errorf("reading pools: %w", err)
		}
		for _, p := range pools {
			all = append(all, p.ID)
		}
		if len(pools) < page.Limit {
			slices.Sort(all)
			return all, nil
		}
		page.After = pools[len(pools)-1].ID
	}
}
