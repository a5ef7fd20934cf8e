package ledger

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
)

// wakePlan has the pool planned as soon as this transaction is there.
func (tx *groupTx) wakePlan(poolID string) {
	if key := PlanKey(poolID); !slices.Contains(tx.wake, key) {
		tx.wake = append(tx.wake, key)
	}
}

// schedulesKey is the one row that materialises schedules.
const schedulesKey = "schedules"

func sweepKey(provisioner string) string { return "sweep:" + provisioner }

func (tx *groupTx) addEvent(e Event) {
	e.At, e.Actor, e.Via = tx.now(), tx.actor.KeyID, tx.actor.Via
	tx.change.Events = append(tx.change.Events, e)
}

func (tx *groupTx) addTask(kind, subject string, at time.Time) {
	tx.change.Tasks = append(tx.change.Tasks, Task{
		ID: tx.ids.New(ids.Task), Kind: kind, Subject: subject, State: TaskReady, RunAt: at, CreatedAt: tx.now(),
	})
}

func (tx *groupTx) addKeyedTask(key, kind, subject string) {
	tx.change.Tasks = append(tx.change.Tasks, Task{
		ID: tx.ids.New(ids.Task), Key: key, Kind: kind, Subject: subject, State: TaskReady, RunAt: tx.now(),
		CreatedAt: tx.now(),
	})
}

// stepNode moves a node by an event and journals it. The message may be empty.
func (tx *groupTx) stepNode(p *poolTx, n node.Node, e node.Event, reason, message string) (node.Node, error) {
	next, err := n.Apply(e, reason, tx.now())
	if err != nil {
		return n, err
	}
	p.putNode(next)
	tx.addEvent(Event{Type: "node." + string(next.State()), Subject: next.ID, PoolID: p.Pool.ID, Reason: reason,
		Message: message})
	return next, nil
}

func (tx *groupTx) stepReservation(p *poolTx, r reservation.Reservation, e reservation.Event, reason,
	message string) (reservation.Reservation, error) {
	next, err := r.Apply(e, reason, tx.now())
	if err != nil {
		return r, err
	}
	if !next.Live() {
		next.Cost = heldCost(p.Pool, next, tx.now())
	}
	p.putReservation(next)
	if !next.Live() {
		chargeReservation(tx, p, next)
	}
	tx.addEvent(Event{OrganizationID: next.OrganizationID, Type: "reservation." + string(next.State()), Subject: next.ID,
		PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}

func (tx *groupTx) stepAllocation(p *poolTx, a allocation.Allocation, e allocation.Event, reason,
	message string) (allocation.Allocation, error) {
	next, err := a.Apply(e, reason, tx.now())
	if err != nil {
		return a, err
	}
	if !next.Live() {
		next.Cost = heldUntilEnd(p.Pool, next)
	}
	p.putAllocation(next)
	learnUse(tx, p, a, next)
	if !next.Live() {
		chargeAllocation(tx, p, next)
	}
	tx.addEvent(Event{OrganizationID: next.OrganizationID, Type: "allocation." + string(next.State()), Subject: next.ID,
		PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}
