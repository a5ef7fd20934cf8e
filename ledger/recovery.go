package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Recovery says since when a pool only reconciles, and why. The zero value says
// that it does not.
//
// A database that was restored from a backup is wrong about the world in both
// directions: it does not know machines that were made since, and believes GPUs
// free that somebody holds. Acting on it would end the ones and give the others
// away twice. So while a pool recovers nothing is made, ended or handed out:
// machines are only looked at, and what was given back is taken back. Nothing is
// promised either: the calendar may lack what was promised since.
type Recovery struct {
	Since  time.Time
	Reason string
}

// Active reports whether the pool only reconciles.
func (r Recovery) Active() bool { return !r.Since.IsZero() }

// BeginRecovery has pools only reconcile, until EndRecovery: those that have
// machines from the provisioner, or all if it is empty. Pools that do so already
// keep their reason. It returns how many began.
func (l Fleet) BeginRecovery(ctx context.Context, actor Actor, provisioner, reason string) (int, error) {
	return eachPool(ctx, l.engine, actor, func(tx *groupTx, p *poolTx) bool {
		if p.Pool.Recovery.Active() || (provisioner != "" && !usesProvisioner(p.Pool, provisioner)) {
			return false
		}
		next := p.Pool
		next.Recovery = Recovery{Since: tx.now(), Reason: clipText(reason, 200)}
		p.putPool(next)
		tx.addEvent(Event{Type: "pool.recovering", Subject: next.ID, PoolID: next.ID, Reason: "recovery",
			Message: fmt.Sprintf("%s only reconciles until an operator confirms: %s", next.Name, next.Recovery.Reason)})
		return true
	})
}

// EndRecovery has all pools work again on what the ledger knows now. What it
// found that no node stands for is then ended like any orphan. It returns how
// many pools were recovering. Only an operator may.
func (l Fleet) EndRecovery(ctx context.Context, actor Actor) (int, error) {
	return eachPool(ctx, l.engine, actor, func(tx *groupTx, p *poolTx) bool {
		if !p.Pool.Recovery.Active() {
			return false
		}
		next := p.Pool
		next.Recovery = Recovery{}
		p.putPool(next)
		tx.wakePlan(next.ID)
		tx.wake = append(tx.wake, schedulesKey)
		tx.addEvent(Event{Type: "pool.recovered", Subject: next.ID, PoolID: next.ID, Reason: "confirmed",
			Message: next.Name + " works again: an operator confirmed what was found"})
		return true
	})
}

// usesProvisioner reports whether a pool may have machines of the provisioner. A node of a
// source that the pool has no more is not known here; its own provisioner's
// sweep looks after it.
func usesProvisioner(p Pool, provisioner string) bool {
	for _, s := range p.Pool.Offerings() {
		if s.Provisioner == provisioner {
			return true
		}
	}
	return false
}

// eachPool changes pools in one transaction and counts those that changed.
func eachPool(ctx context.Context, l *engine, actor Actor, change func(tx *groupTx, p *poolTx) bool) (int, error) {
	changed := 0
	err := l.inOwnTx(ctx, actor, func(tx *groupTx) error {
		if actor.Role != Operator {
			return ErrDenied
		}
		changed = 0
		all, err := allPools(tx)
		if err != nil {
			return err
		}
		for _, id := range all {
			p, err := tx.lockPool(id)
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
func allPools(tx *groupTx) ([]string, error) {
	var all []string
	for page := (Page{Limit: 500}); ; {
		pools, err := tx.port.Pools(page)
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
