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
func (u *groupTx) wakePlan(poolID string) {
	if key := PlanKey(poolID); !slices.Contains(u.wake, key) {
		u.wake = append(u.wake, key)
	}
}

// schedulesKey is the one row that materialises schedules.
const schedulesKey = "schedules"

func sweepKey(provisioner string) string { return "sweep:" + provisioner }

func (u *groupTx) addEvent(e Event) {
	e.At, e.Actor, e.Via = u.now(), u.actor.KeyID, u.actor.Via
	u.change.Events = append(u.change.Events, e)
}

func (u *groupTx) addTask(kind, subject string, at time.Time) {
	u.change.Tasks = append(u.change.Tasks, Task{
		ID: u.ids.New(ids.Task), Kind: kind, Subject: subject, State: TaskReady, RunAt: at, CreatedAt: u.now(),
	})
}

func (u *groupTx) addKeyedTask(key, kind, subject string) {
	u.change.Tasks = append(u.change.Tasks, Task{
		ID: u.ids.New(ids.Task), Key: key, Kind: kind, Subject: subject, State: TaskReady, RunAt: u.now(),
		CreatedAt: u.now(),
	})
}

// stepNode moves a node by an event and journals it. The message may be empty.
func (u *groupTx) stepNode(p *poolTx, n node.Node, e node.Event, reason, message string) (node.Node, error) {
	next, err := n.Apply(e, reason, u.now())
	if err != nil {
		return n, err
	}
	p.putNode(next)
	u.addEvent(Event{Type: "node." + string(next.State()), Subject: next.ID, PoolID: p.Pool.ID, Reason: reason,
		Message: message})
	return next, nil
}

func (u *groupTx) stepReservation(p *poolTx, r reservation.Reservation, e reservation.Event, reason,
	message string) (reservation.Reservation, error) {
	next, err := r.Apply(e, reason, u.now())
	if err != nil {
		return r, err
	}
	if !next.Live() {
		next.Cost = heldCost(p.Pool, next, u.now())
	}
	p.putReservation(next)
	if !next.Live() {
		u.chargeReservation(p, next)
	}
	u.addEvent(Event{OrganizationID: next.OrganizationID, Type: "reservation." + string(next.State()), Subject: next.ID,
		PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}

func (u *groupTx) stepAllocation(p *poolTx, a allocation.Allocation, e allocation.Event, reason,
	message string) (allocation.Allocation, error) {
	next, err := a.Apply(e, reason, u.now())
	if err != nil {
		return a, err
	}
	if !next.Live() {
		next.Cost = heldUntilEnd(p.Pool, next)
	}
	p.putAllocation(next)
	u.learnUse(p, a, next)
	if !next.Live() {
		u.chargeAllocation(p, next)
	}
	u.addEvent(Event{OrganizationID: next.OrganizationID, Type: "allocation." + string(next.State()), Subject: next.ID,
		PoolID: p.Pool.ID, Reason: reason, Message: message})
	return next, nil
}
