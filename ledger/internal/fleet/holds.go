package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// Holds are the verbs about work that holders of allocations have on nodes.
type Holds struct{ *txn.Engine }

// OpenHold notes that work of an allocation's holder begins on a node, before it does:
// from then on the GPUs there are offered to nobody else before the node's daemon has proved
// that nothing of it is left. Repeated, it changes nothing. The isolation is the node's, as its
// daemon says. ErrNotFound: the actor does not see the allocation; ErrDenied: it may not enter;
// *ledger.StateError: the allocation is not active, or its node is not there to be entered;
// *ledger.SharedNodeError: it would be on the node with another organization's work.
func (l Holds) OpenHold(ctx context.Context, actor ledger.Actor, allocationID, nodeID string,
	is capacity.Isolation) error {
	return l.InGroup(ctx, actor, &ledger.LockHint{Node: nodeID}, func(tx *txn.Tx) error {
		p, n, err := LockPoolOfNode(tx, nodeID)
		if err != nil {
			return err
		}
		a, ok := p.FindAllocation(allocationID)
		if !ok {
			if a, err = tx.Port.Allocation(actor.Scope(), allocationID); err != nil {
				return fmt.Errorf("reading allocation %s: %w", allocationID, err)
			}
			return &ledger.StateError{Subject: a.ID, State: string(a.State()), Asked: "open a session"}
		}
		if err := mayOpen(tx, actor, a, n); err != nil {
			return err
		}
		return openOn(tx, p, a, nodeID, is)
	})
}

// openOn notes that work of an allocation begins on a node that it may enter.
func openOn(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, nodeID string, is capacity.Isolation) error {
	if err := mayShare(tx, p, a, nodeID, is); err != nil || slices.Contains(a.Opened, nodeID) {
		return err
	}
	a.Opened = append(slices.Clone(a.Opened), nodeID)
	p.PutAllocation(a)
	tx.AddEvent(ledger.Event{OrganizationID: a.OrganizationID, Type: "allocation.opened", Subject: a.ID,
		PoolID: p.Pool.ID, Message: "work begins on node " + nodeID})
	return nil
}

// OpenForJob notes that a job's work begins on a node, as OpenHold does.
func OpenForJob(tx *txn.Tx, p *txn.PoolTx, n node.Node, a allocation.Allocation, is capacity.Isolation) error {
	if err := mayOpen(tx, ledger.SystemActor("node"), a, n); err != nil {
		return err
	}
	return openOn(tx, p, a, n.ID, is)
}

func mayOpen(tx *txn.Tx, actor ledger.Actor, a allocation.Allocation, n node.Node) error {
	switch {
	case !actor.Scope().All && a.OrganizationID != actor.OrganizationID:
		return fmt.Errorf("reading allocation %s: %w", a.ID, ledger.ErrNotFound)
	case !actor.MayEnter(a.OrganizationID):
		return ledger.ErrDenied
	case a.State() != allocation.Active, a.Observed(), !tx.Now().Before(a.LeaseUntil):
		return &ledger.StateError{Subject: a.ID, State: string(a.State()), Asked: "open a session"}
	case !slices.ContainsFunc(a.Devices, func(h allocation.Held) bool { return h.NodeID == n.ID }):
		return fmt.Errorf("reading node %s of allocation %s: %w", n.ID, a.ID, ledger.ErrNotFound)
	case !ledger.CanOpen(n):
		return &ledger.StateError{Subject: n.ID, State: string(n.State()), Asked: "open a session"}
	}
	return nil
}

// mayShare refuses to begin work on a node that has work of another organization, or has not
// proved yet that it is cleaned up, unless the node keeps them apart as the pool asks.
func mayShare(tx *txn.Tx, p *txn.PoolTx, a allocation.Allocation, nodeID string, is capacity.Isolation) error {
	if is.AtLeast(p.Pool.Isolation) {
		return nil
	}
	refused := &ledger.SharedNodeError{NodeID: nodeID, Isolation: is, Least: p.Pool.Isolation}
	for other := range p.Allocations.All() {
		if ledger.IsOthersWork(other, a.OrganizationID, nodeID) {
			return refused
		}
	}
	for _, c := range p.Cleaning {
		if c.Doubts(nodeID) && holderOf(tx, c.ID) != a.OrganizationID {
			return refused
		}
	}
	return nil
}

// RecordCleaned keeps what a node's daemon says of what is left of holders' work there. What is not
// clean takes the node out of use, also where nobody waits for it any more.
func RecordCleaned(tx *txn.Tx, p *txn.PoolTx, n node.Node, said []ledger.Cleaned) error {
	ids := make([]string, len(said))
	for i, s := range said {
		ids[i] = s.AllocationID
	}
	if err := txn.ReadHolders(tx, ids); err != nil {
		return err
	}
	for _, s := range said {
		if err := recordCleaned(tx, p, n, s); err != nil {
			return err
		}
	}
	return nil
}

func recordCleaned(tx *txn.Tx, p *txn.PoolTx, n node.Node, s ledger.Cleaned) error {
	i := slices.IndexFunc(p.Cleaning, func(c learned.Cleaning) bool {
		return c.ID == s.AllocationID && c.Doubts(n.ID)
	})
	awaited := i >= 0 && p.Cleaning[i].Awaits(n.ID)
	if s.Problem != "" && !awaited { // it is still there
		return quarantineUnclean(tx, p, n, s.AllocationID, s.Problem)
	}
	if i < 0 {
		return nil
	}
	if s.Problem != "" {
		return giveUpCleaning(tx, p, n, i, s.Problem)
	}
	took := tx.Now().Sub(p.Cleaning[i].Since)
	changeCleaning(p, i, p.Cleaning[i].Proved(n.ID))
	tx.AddEvent(ledger.Event{Type: "allocation.cleaned", Subject: s.AllocationID, PoolID: p.Pool.ID,
		OrganizationID: holderOf(tx, s.AllocationID),
		Message: fmt.Sprintf("its work on node %s has ended and is cleaned up, after %s: %s", n.ID, phrase.Span(took),
			ledger.ClipText(s.Proof, 300))})
	tx.WakePlan(p.Pool.ID)
	return nil
}

// holderOf is the organization that an allocation was of; empty if that is not known.
func holderOf(tx *txn.Tx, allocationID string) string {
	id, err := txn.HolderOf(tx, allocationID)
	if err != nil {
		return ""
	}
	return id
}

// changeCleaning replaces one of what is being cleaned.
func changeCleaning(p *txn.PoolTx, i int, to learned.Cleaning) {
	all := slices.Clone(p.Cleaning)
	all[i] = to
	p.SetCleaning(all)
}

// resumeCleaning awaits anew what was given up of a node that is taken back into use: a proof
// alone, or the node's end, ends the doubt.
func resumeCleaning(tx *txn.Tx, p *txn.PoolTx, nodeID string) {
	for i, c := range p.Cleaning {
		if c.Doubts(nodeID) && !c.Awaits(nodeID) {
			changeCleaning(p, i, c.Resume(nodeID, tx.Now()))
		}
	}
}

// giveUpCleaning takes a node out of use that was not proved clean.
func giveUpCleaning(tx *txn.Tx, p *txn.PoolTx, n node.Node, i int, why string) error {
	id := p.Cleaning[i].ID
	changeCleaning(p, i, p.Cleaning[i].GiveUp(n.ID))
	evidence := uncleanText(id, why)
	tx.AddEvent(ledger.Event{Type: "allocation.not_cleaned", Subject: id, PoolID: p.Pool.ID,
		OrganizationID: holderOf(tx, id), Reason: ledger.ReasonNotClean, Message: "node " + n.ID + ": " + evidence})
	tx.WakePlan(p.Pool.ID)
	return quarantineUnclean(tx, p, n, id, why)
}

func quarantineUnclean(tx *txn.Tx, p *txn.PoolTx, n node.Node, allocationID, why string) error {
	return quarantineFor(tx, p, n, ledger.ReasonNotClean, uncleanText(allocationID, why),
		"something of an earlier holder may be left there")
}

func uncleanText(allocationID, why string) string {
	return ledger.ClipText(fmt.Sprintf("it is not clean of allocation %s: %s", allocationID, why), 300)
}

// endCleaning ends the cleaning that has lasted long enough. Where a daemon had to prove
// it and did not, its node is taken out of use; a node that is gone has nothing to prove.
func endCleaning(tx *txn.Tx, p *txn.PoolTx) error {
	for i := 0; i < len(p.Cleaning); i++ {
		for _, id := range slices.Concat(p.Cleaning[i].Await, p.Cleaning[i].GivenUp) {
			n, ok := p.FindNode(id)
			switch {
			case !ok || node.Machine.Terminal(n.State()):
				changeCleaning(p, i, p.Cleaning[i].Proved(id))
			case p.Cleaning[i].Awaits(id) && !tx.Now().Before(p.Cleaning[i].Overdue()):
				if err := giveUpCleaning(tx, p, n, i, "its daemon has not proved it within "+
					phrase.Length(learned.CleanWithin)); err != nil {
					return err
				}
			}
		}
	}
	if dirty, clean := learned.Cleaned(p.Cleaning, p.Pool.Timers.Cleaning, tx.Now()); len(clean) > 0 {
		p.SetCleaning(dirty)
	}
	return nil
}
