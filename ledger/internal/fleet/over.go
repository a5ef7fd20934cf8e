package fleet

import (
	"slices"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/booking"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// RecordOver ends the active allocations of which a node's daemon says that it ended their work once, has cleaned it
// up, and lets nobody in again: the ledger was restored from before they ended, or the node ended the work by itself as
// it could not hear that the lease goes on. One that has work on other nodes goes on there.
func RecordOver(tx *txn.Tx, p *txn.PoolTx, n node.Node, over []string) error {
	for _, id := range over {
		a, found := p.FindAllocation(id)
		if !found || !ledger.MayBeOverOn(a, n.ID) || !hasGPUsOn(a, n.ID) {
			continue
		}
		a.Opened = slices.DeleteFunc(slices.Clone(a.Opened), func(on string) bool { return on == n.ID })
		if len(a.Opened) > 0 {
			p.PutAllocation(a)
			tx.AddEvent(ledger.Event{OrganizationID: a.OrganizationID, Type: "allocation.left_node", Subject: a.ID,
				PoolID: p.Pool.ID, Reason: ledger.ReasonOverOnNode, Message: "its work on node " + n.ID +
					" had ended before, as the daemon there says: it goes on where else it has work"})
			continue
		}
		a, err := tx.StepAllocation(p, a, allocation.Release, ledger.ReasonOverOnNode, "")
		if err != nil {
			return err
		}
		if _, err = booking.EndAllocation(tx, p, a, allocation.Finish, ledger.ReasonOverOnNode, "it had ended before, as "+
			"the daemon of node "+n.ID+" says, and the database did not know: it ends now"); err != nil {
			return err
		}
		tx.WakePlan(p.Pool.ID)
	}
	return nil
}

func hasGPUsOn(a allocation.Allocation, nodeID string) bool {
	return slices.ContainsFunc(a.Devices, func(h allocation.Held) bool { return h.NodeID == nodeID })
}

// UnlistedHolds is ledger.UnlistedHolds of a pool that is locked.
func UnlistedHolds(p *txn.PoolTx, nodeID string, listed []string) []string {
	var on []allocation.Allocation
	for a := range p.Allocations.All() {
		if hasGPUsOn(a, nodeID) {
			on = append(on, a)
		}
	}
	return ledger.UnlistedHolds(nodeID, listed, on)
}
