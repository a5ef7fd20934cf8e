package txn

import (
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
)

// WakePlan has the pool planned as soon as this transaction is there.
func (tx *Tx) WakePlan(poolID string) { tx.WakePlanAt(poolID, tx.Now()) }

// planWithin is how soon a pool is planned after every promise. The process that plans
// may have another policy than this one, such as a longer guard, and goes by its own.
const planWithin = time.Minute

// WakeAllPlans has every pool planned as soon as this transaction is there.
func WakeAllPlans(tx *Tx) error {
	for after := ""; ; {
		pools, err := tx.Port.Pools(ledger.Page{After: after, Limit: 500})
		if err != nil {
			return fmt.Errorf("listing pools: %w", err)
		}
		if len(pools) == 0 {
			return nil
		}
		for _, pool := range pools {
			tx.WakePlan(pool.ID)
			after = pool.ID
		}
	}
}

// WakePlanFor has the pool planned when a promise that was just made needs it.
func (tx *Tx) WakePlanFor(p *PoolTx, r reservation.Reservation) {
	at := plan.LookAt(&r, p.Pool.Timers, p.keepAheadNow(tx.Config.Policy), tx.Now())
	if latest := tx.Now().Add(planWithin); latest.Before(at) {
		at = latest
	}
	tx.WakePlanAt(p.Pool.ID, at)
}

// WakePlanAt has the pool planned at a time, if it would be later.
func (tx *Tx) WakePlanAt(poolID string, at time.Time) {
	key := ledger.PlanKey(poolID)
	if !slices.ContainsFunc(tx.Wake, func(w ledger.Wakeup) bool { return w.Key == key && !w.At.After(at) }) {
		tx.Wake = append(tx.Wake, ledger.Wakeup{Key: key, At: at})
	}
}

// SchedulesKey is the one row that materialises schedules.
const SchedulesKey = "schedules"

// SweepKey is the key of the task that compares a provisioner's list with the
// ledger.
func SweepKey(provisioner string) string { return "sweep:" + provisioner }

// ObserveKey is the key of the task that looks at what runs in a provisioner's cluster.
func ObserveKey(provisioner string) string { return "observe:" + provisioner }

// KeepKey is the key of the task that keeps the warm nodes of a provisioner's cluster.
func KeepKey(provisioner string) string { return "keep:" + provisioner }

// AddEvent journals an event, in the actor's name.
func (tx *Tx) AddEvent(e ledger.Event) {
	e.At, e.Actor, e.Via = tx.Now(), tx.Actor.KeyID, tx.Actor.Via
	tx.Change.Events = append(tx.Change.Events, e)
}

// AddTask has a task run at a time.
func (tx *Tx) AddTask(kind, subject string, at time.Time) {
	tx.Change.Tasks = append(tx.Change.Tasks, ledger.Task{
		ID: tx.IDs.New(ids.Task), Kind: kind, Subject: subject, State: ledger.TaskReady, RunAt: at, CreatedAt: tx.Now(),
	})
}

// FinishTask ends a guarded run with this transaction: the task is done, or runs again
// at next if that is not zero. A void guard fails the transaction with ErrFenced.
func (tx *Tx) FinishTask(g ledger.Guard, next time.Time) { tx.FailTask(g, next, "") }

// FailTask is FinishTask for a run that failed.
func (tx *Tx) FailTask(g ledger.Guard, next time.Time, failure string) {
	tx.Change.Finished = append(tx.Change.Finished, ledger.FinishedRun{Guard: g, Next: next, Failure: failure})
}

// AddKeyedTask makes sure that there is the one task of a key.
func (tx *Tx) AddKeyedTask(key, kind, subject string) {
	tx.Change.Tasks = append(tx.Change.Tasks, ledger.Task{
		ID: tx.IDs.New(ids.Task), Key: key, Kind: kind, Subject: subject, State: ledger.TaskReady, RunAt: tx.Now(),
		CreatedAt: tx.Now(),
	})
}

// StepNode moves a node by an event and journals it. The message may be empty.
func (tx *Tx) StepNode(p *PoolTx, n node.Node, e node.Event, reason, message string) (node.Node, error) {
	next, err := n.Apply(e, reason, tx.Now())
	if err != nil {
		return n, err
	}
	p.PutNode(next)
	tx.AddEvent(ledger.Event{Type: "node." + string(next.State()), Subject: next.ID, PoolID: p.Pool.ID, Reason: reason,
		Message: message})
	return next, nil
}

// StepReservation moves a reservation by an event, journals it, and counts what
// it used once it is over.
func (tx *Tx) StepReservation(p *PoolTx, r reservation.Reservation, e reservation.Event, reason,
	message string) (reservation.Reservation, error) {
	next, err := r.Apply(e, reason, tx.Now())
	if err != nil {
		return r, err
	}
	if !next.Live() {
		next.Cost = heldCost(p.Pool, next, tx.Now())
	}
	p.PutReservation(next)
	if !next.Live() {
		chargeReservation(tx, p, next)
	}
	tx.AddEvent(ledger.Event{OrganizationID: next.OrganizationID, Type: "reservation." + string(next.State()),
		Subject: next.ID,
		PoolID:  p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}

// StepAllocation moves an allocation by an event, journals it, and counts what
// it used once it is over.
func (tx *Tx) StepAllocation(p *PoolTx, a allocation.Allocation, e allocation.Event, reason,
	message string) (allocation.Allocation, error) {
	next, err := a.Apply(e, reason, tx.Now())
	if err != nil {
		return a, err
	}
	if !next.Live() {
		next.Cost = heldUntilEnd(p.Pool, next)
	}
	p.PutAllocation(next)
	learnUse(tx, p, a, next)
	if !next.Live() {
		chargeAllocation(tx, p, next)
	}
	tx.AddEvent(ledger.Event{OrganizationID: next.OrganizationID, Type: "allocation." + string(next.State()),
		Subject: next.ID,
		PoolID:  p.Pool.ID, Reason: reason, Message: message})
	if next.JobID == "" {
		return next, nil
	}
	if !next.Live() {
		return next, settleJob(tx, p, next)
	}
	if next.State() == allocation.Active {
		return next, orderRanks(tx, p, next)
	}
	return next, nil
}
