package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// remindAfter is how long a node is kept before the journal tells of it, and how
// long it takes until it is told again.
const remindAfter = 24 * time.Hour

// QuarantineNode keeps a ready node for inspection until it is resumed or drained.
// Its machine stays and is renewed, whoever holds its GPUs keeps them, may extend
// the lease and is told, no new work comes to it, and what was promised on it gets another place where
// there is one. A node that its health gate has quarantined already is kept, too,
// as long as it is there. Why is for people.
func (l Fleet) QuarantineNode(ctx context.Context, actor ledger.Actor, nodeID, why string) (node.Node, error) {
	return moveNode(ctx, l.Engine, actor, nodeID, "quarantine it",
		func(tx *txn.Tx, p *txn.PoolTx, n node.Node) (node.Node, error) {
			if n.Kept() && !n.Quarantine.Resuming {
				return n, errKept
			}
			if n.State() != node.Quarantined {
				var err error
				if n, err = tx.StepNode(p, n, node.Quarantine, ledger.ReasonInspection,
					because("its machine is kept until it is resumed or drained", why)); err != nil {
					return n, err
				}
			}
			n.Quarantine.Kept, n.Quarantine.Resuming, n.Quarantine.Why = true, false, why
			p.PutNode(n)
			tellHolders(tx, p, n, ledger.ReasonInspection,
				fmt.Sprintf("node %s is quarantined for inspection: the lease goes on, and nothing new is placed there",
					n.ID))
			vacateBooked(tx, p, n.Slot)
			return n, nil
		})
}

// because adds to a message what somebody gave as a reason.
func because(message, why string) string {
	if why == "" {
		return message
	}
	return message + ": " + why
}

var errKept = errors.New("it is kept already")

// ResumeNode takes a node back into use: a draining one at once, a quarantined one
// as soon as it has passed the health gate, which looks at it now. One that does
// not pass stays in quarantine, and the journal says why.
func (l Fleet) ResumeNode(ctx context.Context, actor ledger.Actor, nodeID string) (node.Node, error) {
	return moveNode(ctx, l.Engine, actor, nodeID, "resume it",
		func(tx *txn.Tx, p *txn.PoolTx, n node.Node) (node.Node, error) {
			if n.State() != node.Quarantined {
				resumeCleaning(tx, p, n.ID)
				return tx.StepNode(p, n, node.Resume, "asked", "")
			}
			if !n.Quarantine.Resuming {
				n.Quarantine.Kept, n.Quarantine.Resuming = true, true
				p.PutNode(n)
				if err := clearDaemon(tx, n.ID); err != nil {
					return n, err
				}
				tx.AddTask(ledger.TaskCheckNode, n.ID, tx.Now())
				tx.AddEvent(ledger.Event{Type: "node.resuming", Subject: n.ID, PoolID: p.Pool.ID, Reason: "asked",
					Message: "it must pass its health gate first"})
			}
			return n, nil
		})
}

// isHeld reports whether somebody works on the node.
func isHeld(p *txn.PoolTx, n node.Node) bool {
	for a := range p.Allocations.All() {
		if a.Holds() && slices.Contains(a.Slots, n.Slot) {
			return true
		}
	}
	return false
}

// tellHolders tells everybody who works on the node.
func tellHolders(tx *txn.Tx, p *txn.PoolTx, n node.Node, reason, message string) {
	for a := range p.Allocations.All() {
		if a.Holds() && slices.Contains(a.Slots, n.Slot) {
			tx.AddEvent(ledger.Event{OrganizationID: a.OrganizationID, Type: "allocation.warned", Subject: a.ID,
				PoolID: p.Pool.ID,
				Reason: reason, Message: message})
		}
	}
}

// vacateBooked gives the promises on a slot other places, as far as there are any:
// those for which nothing was warmed yet. The planner looks after the rest.
func vacateBooked(tx *txn.Tx, p *txn.PoolTx, slot int) {
	var booked []reservation.Reservation
	for r := range p.Reservations.All() {
		if r.State() == reservation.Booked && slices.Contains(r.Slots, slot) {
			booked = append(booked, r)
		}
	}
	_, later := p.Preferred.SlotTiers()
	for _, r := range booked {
		p.Places.Remove(r.ID)
		slots, ok := p.Places.FindInto(nil, r.Shape, r.Window, later)
		p.Places.Force(r.Booking())
		if ok {
			r.Slots = slots
			p.PutReservation(r)
		}
	}
}

// finishInspection goes on with a quarantined node whose machine was found in order: it
// is taken back where that was asked for, and not forgotten where it was not.
func finishInspection(tx *txn.Tx, p *txn.PoolTx, n node.Node, m ledger.Instance) error {
	switch {
	case n.Quarantine.Resuming:
		n.Address, n.Devices = m.Address, m.Devices
		resumeCleaning(tx, p, n.ID)
		_, err := tx.StepNode(p, n, node.Resume, "asked",
			fmt.Sprintf("%s passed the health gate after %s of quarantine",
				phrase.Count(len(m.Devices), "GPU"), phrase.Span(tx.Now().Sub(n.Quarantine.Since()))))
		tx.WakePlan(p.Pool.ID)
		return err
	case n.Kept() && !tx.Now().Before(LaterOf(n.Quarantine.WarnedAt, n.Quarantine.Since()).Add(remindAfter)):
		n.Quarantine.WarnedAt = tx.Now()
		p.PutNode(n)
		kept := tx.Now().Sub(n.Quarantine.Since())
		tx.AddEvent(ledger.Event{Type: "node.still_quarantined", Subject: n.ID, PoolID: p.Pool.ID,
			Reason: ledger.ReasonForgotten,
			Message: fmt.Sprintf("kept for %s, at a cost of %s: forewarm nodes resume, or drain", phrase.Span(kept),
				n.Offering.Price.For(kept))})
	}
	return nil
}

// keepQuarantined keeps a quarantined node that did not pass its health gate.
func keepQuarantined(tx *txn.Tx, p *txn.PoolTx, n node.Node, fault string) {
	n.Quarantine.Resuming = false
	p.PutNode(n)
	tx.AddEvent(ledger.Event{Type: "node.resume_refused", Subject: n.ID, PoolID: p.Pool.ID, Reason: fault,
		Message: "it did not pass its health gate, and stays in quarantine"})
}

// LaterOf returns the later of two times.
func LaterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// farAhead ends what nobody knows the end of.
const farAhead = 100 * 366 * 24 * time.Hour
