package txn

import (
	"slices"
	"time"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
)

// learnUse lets the pool learn from an allocation that changed: from one that
// begins, that its nodes are of use to somebody; from one that its holder or its
// lease ended, how much of a lease is used. What a lost node ended says nothing of
// that.
func learnUse(tx *Tx, p *PoolTx, from, to allocation.Allocation) {
	switch {
	case to.State() == allocation.Active:
		countServed(tx, p, to)
	case from.State() == allocation.Active && (to.State() == allocation.Releasing || to.State() == allocation.Expired):
		next := p.Pool.Learned
		next.Leases = next.Leases.Learn(tx.Now().Sub(from.ActiveAt), from.LeaseUntil.Sub(from.ActiveAt))
		p.setLearned(next)
	}
	if !to.Live() {
		beginCleaning(tx, p, to)
	}
}

// beginCleaning keeps what an allocation gave back free while it is cleaned: as long as
// the pool says, and until the daemons of the nodes where its work ran prove that nothing
// of it is left. What failed with its node is gone with it, but for its other nodes.
func beginCleaning(tx *Tx, p *PoolTx, a allocation.Allocation) {
	ended := a.State() == allocation.Released || a.State() == allocation.Expired
	await := slices.DeleteFunc(slices.Clone(a.Opened), func(id string) bool {
		n, ok := p.FindNode(id)
		return !ok || node.Machine.Terminal(n.State())
	})
	if len(a.Devices) == 0 || len(await) == 0 && (p.Pool.Timers.Cleaning == 0 || !ended) {
		return
	}
	x := learned.Cleaning{ID: a.ID, Since: tx.Now(), Slots: a.Slots, GPUs: a.Shape.PerNode, Short: a.Shape.Short,
		Await: await}
	for _, h := range a.Devices {
		x.UUIDs = append(x.UUIDs, h.UUID)
	}
	p.SetCleaning(append(slices.Clip(p.Cleaning), x))
}

// SetCleaning replaces which devices are being cleaned.
func (p *PoolTx) SetCleaning(all []learned.Cleaning) {
	before := p.Cleaning
	p.Tx.undos = append(p.Tx.undos, func() { p.replaceCleaning(before) })
	p.replaceCleaning(all)
	next := p.Pool.Learned
	next.Cleaning = all
	p.setLearned(next)
}

// replaceCleaning replaces them in the calendar, too.
func (d *cachedPool) replaceCleaning(all []learned.Cleaning) {
	for _, x := range d.Cleaning {
		d.Places.Remove(x.Booking().ID)
	}
	d.Cleaning = all
	for _, x := range all {
		d.Places.Force(x.Booking())
	}
}

// IsDirty reports whether a device is being cleaned.
func (p *PoolTx) IsDirty(uuid string) bool {
	dirty, _ := learned.Cleaned(p.Cleaning, p.Pool.Timers.Cleaning, p.Tx.Now())
	return slices.ContainsFunc(dirty, func(x learned.Cleaning) bool { return slices.Contains(x.UUIDs, uuid) })
}

// countServed takes the nodes of an allocation that nobody used before off the creates
// that are capped.
func countServed(tx *Tx, p *PoolTx, a allocation.Allocation) {
	_, window := plan.Creates(p.Pool.Pool)
	var asked []time.Time
	for _, slot := range a.Slots {
		n, ok := p.NodeOnSlot(slot)
		if ok && tx.Now().Sub(n.RequestedAt) < window && neverUsed(p, n, a.ID) {
			asked = append(asked, n.RequestedAt)
		}
	}
	if len(asked) > 0 {
		next := p.Pool.Learned
		next.Created = next.Created.Take(asked, window, tx.Now())
		p.setLearned(next)
	}
}

// neverUsed reports whether nobody but the holder ever used a node: whoever ends
// leaves it idle since then.
func neverUsed(p *PoolTx, n node.Node, holder string) bool {
	if !n.IdleSince.Equal(n.ReadyAt) {
		return false
	}
	for _, d := range n.Devices {
		if by := p.Taken[d.UUID]; by != "" && by != holder {
			return false
		}
	}
	return true
}
