package booking

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/observe"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Reasons of observed work, as codes.
const (
	reasonObserved  = "observed"
	reasonWorkEnded = "work_ended"
)

// reasonQueue is what work waited for that was seen to wait, and not for nodes that
// booted: its turn, its limits, or others to end.
const reasonQueue = "queue"

// grain is how exactly clusters tell times.
const grain = time.Second

// addWork notes work that is met first.
func (o sight) addWork(tx *txn.Tx, p *txn.PoolTx, w ledger.ObservedWork, out *ledger.Observed) error {
	slots, held := placeWork(p, w, nil)
	from, waitedFor := o.waitedFrom(w)
	a := allocation.New(allocation.Allocation{
		ID: tx.IDs.New(ids.Allocation), OrganizationID: p.Pool.Holders.Find(w.WorkOwner), PoolID: p.Pool.ID,
		Shape: shapeOfWork(w), Slots: slots, Devices: held, Window: calendar.Interval{Start: from, End: from},
		Work: w.Work,
	}, from)
	a.Work.QueuedAt, a.Work.WaitedFor = o.hereAt(w.QueuedAt), waitedFor
	if w.StartedAt.IsZero() {
		a.Devices = nil
		p.PutAllocation(a)
		tx.AddEvent(ledger.Event{OrganizationID: a.OrganizationID, Type: "allocation.pending", Subject: a.ID,
			PoolID: p.Pool.ID, Reason: reasonObserved,
			Message: fmt.Sprintf("the cluster boots nodes for %s", w.ID)})
		return nil
	}
	return o.startWork(tx, p, a, w, out)
}

// waitedFrom is since when work waits for what Forewarm is for, nodes that boot, and what
// else it waited for. Work that an earlier look saw waiting without a node did not wait
// for a boot until now. Of work that no look has seen waiting nobody knows, and all of
// its wait counts: what is missed must not look better than it was.
func (o sight) waitedFrom(w ledger.ObservedWork) (from time.Time, waitedFor string) {
	queued := o.hereAt(w.QueuedAt)
	switch {
	case o.before.IsZero(): // what was there before us is no start of ours to score
		return cmp.Or(o.hereAt(w.StartedAt), o.now), allocation.WaitedUnwatched
	case w.QueuedAt.Add(grain).After(o.before):
		return queued, ""
	case w.StartedAt.IsZero():
		return o.now, reasonQueue
	default:
		return o.hereAt(w.StartedAt), reasonQueue
	}
}

// startWork notes that work began, and claims the promises that it came for.
func (o sight) startWork(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, w ledger.ObservedWork,
	out *ledger.Observed) error {
	started := o.hereAt(w.StartedAt)
	if started.Before(a.RequestedAt) {
		started = a.RequestedAt
	}
	watched := a.Work.WaitedFor != allocation.WaitedUnwatched
	if watched && started.Sub(a.RequestedAt) <= allocation.ZeroWait && len(a.Slots) == len(w.Nodes) {
		out.Warm++
		claims, err := claimForWork(tx, p, &a, started)
		if err != nil {
			return err
		}
		out.Claims += claims
	}
	a, err := txn.StartObserved(tx, p, a, started, reasonObserved, describeStart(a, started))
	if err != nil {
		return err
	}
	out.Started++
	return o.followWork(tx, p, a, w, true, out)
}

// placeWork returns the slots of the work's nodes that are kept warm, and devices that it
// holds there, besides those that it holds already. Which ones it really uses is its
// scheduler's affair; how many is what counts here.
func placeWork(p *txn.PoolTx, w ledger.ObservedWork, holds []allocation.Held) (
	slots []int, held []allocation.Held) {
	held = slices.Clone(holds)
	for _, part := range w.Nodes {
		n, found := warmNode(p, part.ProviderID)
		if !found {
			continue
		}
		slots = append(slots, n.Slot)
		left := part.GPUs
		for _, h := range holds {
			if h.NodeID == n.ID {
				left--
			}
		}
		for _, d := range n.Devices {
			if left > 0 && p.Taken[d.UUID] == "" {
				held = append(held, allocation.Held{NodeID: n.ID, UUID: d.UUID})
				left--
			}
		}
	}
	return slots, held
}

// warmNode finds a node that is kept warm, or is on its way, by its provider's id.
func warmNode(p *txn.PoolTx, providerID string) (node.Node, bool) {
	for n := range p.Nodes.All() {
		if providerID != "" && n.ProviderID == providerID && (n.Coming() || n.State() == node.Ready) {
			return n, true
		}
	}
	return node.Node{}, false
}

// shapeOfWork is the shape that comes nearest to work: it may lie unevenly on its nodes.
func shapeOfWork(w ledger.ObservedWork) capacity.Shape {
	total, most := 0, 1
	for _, part := range w.Nodes {
		total, most = total+part.GPUs, max(most, part.GPUs)
	}
	nodes := max(1, len(w.Nodes))
	shape := capacity.Shape{Nodes: nodes, PerNode: most, Short: nodes*most - total}
	if !shape.Valid() {
		shape = capacity.Shape{Nodes: nodes, PerNode: max(1, (total+nodes-1)/nodes)}
	}
	return shape
}

// claimForWork claims the promises that work came for, and returns how many.
func claimForWork(tx *txn.Tx, p *txn.PoolTx, a *allocation.Allocation, started time.Time) (int, error) {
	var promises []reservation.Reservation
	for r := range p.Reservations.All() {
		if r.OrganizationID == a.OrganizationID && r.Placed() {
			promises = append(promises, r)
		}
	}
	lead := plan.Lead(p.Pool.AsPlanned(tx.Now()).Boot, tx.Config.Policy)
	slots := unclaimedSlots(p, *a)
	start := observe.Start{OrganizationID: a.OrganizationID, At: started, Slots: slots, Nodes: len(slots)}
	claims := observe.Claims(promises, start, lead)
	for _, c := range claims {
		r, _ := p.FindReservation(c.ReservationID)
		id, err := claimSlots(tx, p, r, c.Slots, a.Work.ID)
		if err != nil {
			return 0, err
		}
		a.Reservations = append(a.Reservations, id)
	}
	return len(claims), nil
}

// unclaimedSlots are the slots of work on which no other work of its organization has claimed
// a promise: many small jobs on one node are what one promise of a node was for.
func unclaimedSlots(p *txn.PoolTx, a allocation.Allocation) []int {
	return slices.DeleteFunc(slices.Clone(a.Slots), func(slot int) bool {
		for other := range p.Allocations.All() {
			if other.ID != a.ID && other.Observed() && other.Live() && other.OrganizationID == a.OrganizationID &&
				len(other.Reservations) > 0 && slices.Contains(other.Slots, slot) {
				return true
			}
		}
		return false
	})
}

// claimSlots claims a promise, or the part of it on some of its slots: that part becomes
// a promise of its own, which is over, and the rest waits for those who come later. It
// returns the id of what was claimed.
func claimSlots(tx *txn.Tx, p *txn.PoolTx, r reservation.Reservation, slots []int, by string) (string, error) {
	message := fmt.Sprintf("claimed by %s, which the cluster placed", by)
	if len(slots) < len(r.Slots) {
		rest, part := r.Split(slots, tx.IDs.New(ids.Reservation))
		rest.Cost = admission.Cost(p.Pool.Pool, rest.Shape, rest.Window.Length())
		p.PutReservation(rest)
		message = fmt.Sprintf("%s, %s of %s", message, phrase.Count(len(slots), "node"), r.ID)
		r = part
	}
	_, err := tx.StepReservation(p, r, reservation.Claim, "claimed", message)
	return r.ID, err
}

// describeStart says in one sentence how work began.
func describeStart(a allocation.Allocation, started time.Time) string {
	where := "on nodes that were up"
	if len(a.Slots) > 0 {
		where = "on warm nodes"
	}
	wait := phrase.Span(started.Sub(a.RequestedAt))
	if started.Sub(a.RequestedAt) <= allocation.ZeroWait {
		return fmt.Sprintf("the cluster began %s on %s %s, with zero wait", a.Work.ID,
			phrase.Count(a.Shape.GPUs(), "GPU"), where)
	}
	return fmt.Sprintf("the cluster began %s on %s after %s", a.Work.ID, phrase.Count(a.Shape.GPUs(), "GPU"), wait)
}

// followWork brings what is known of work in line with what a later look says of it. Work
// that a complete one leaves out has ended, nobody knows when exactly.
func (o sight) followWork(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, w ledger.ObservedWork, told bool,
	out *ledger.Observed) error {
	if told {
		a = placeAgain(p, a, w)
		if a.State() == allocation.Pending && !w.StartedAt.IsZero() {
			return o.startWork(tx, p, a, w, out)
		}
	}
	ended := o.hereAt(w.EndedAt)
	if !told && o.Complete {
		ended = o.now
	}
	if ended.IsZero() {
		return nil
	}
	if ended.Before(a.ActiveAt) {
		ended = a.ActiveAt
	}
	message := fmt.Sprintf("%s gave up waiting", a.Work.ID)
	if a.State() == allocation.Active {
		message = fmt.Sprintf("%s ended after %s", a.Work.ID, phrase.Span(ended.Sub(a.ActiveAt)))
	}
	_, err := txn.EndObserved(tx, p, a, ended, reasonWorkEnded, message)
	MarkIdle(tx, p, a.Slots)
	out.Ended++
	return err
}

// placeAgain notes nodes of work that have become ready since they were looked at: work
// may begin on a node before its health gate is through.
func placeAgain(p *txn.PoolTx, a allocation.Allocation, w ledger.ObservedWork) allocation.Allocation {
	slots, held := placeWork(p, w, a.Devices)
	if w.StartedAt.IsZero() {
		held = a.Devices
	}
	if len(held) == len(a.Devices) && (len(slots) < len(a.Slots) || slices.Equal(slots, a.Slots)) {
		return a
	}
	a.Slots, a.Devices = slots, held
	p.PutAllocation(a)
	return a
}
