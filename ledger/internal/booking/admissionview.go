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
	"github.com/forewarm/forewarm/core/phrase"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/internal/txn"
)

// refuseTooLate refuses a speculative reservation that would be over before its nodes
// are likely to be up: it could only cost.
func refuseTooLate(p *txn.PoolTx, slots []int, w calendar.Interval, now time.Time) []admission.Reason {
	boot := p.Pool.AsPlanned(now).Boot.P50()
	usable := now
	for _, slot := range slots {
		due := now
		if n, ok := p.NodeOnSlot(slot); ok && n.Coming() {
			due = n.RequestedAt.Add(boot)
		} else if p.SlotReadiness(slot) != txn.SlotReady {
			due = now.Add(boot)
		}
		if due.After(usable) {
			usable = due
		}
	}
	if usable.Before(w.End) {
		return nil
	}
	return []admission.Reason{{
		Code: admission.LeadTimeTooShort, Unit: "seconds", Limit: int64(boot / time.Second),
		Asked: int64(w.End.Sub(now) / time.Second),
		Message: fmt.Sprintf("the window ends in %s, and a node of pool %s takes %s to boot",
			phrase.Span(w.End.Sub(now)),
			p.Pool.Name, phrase.Span(boot)),
	}}
}

// admissionView gathers what admission looks at for one organization in one pool.
func admissionView(tx *txn.Tx, p *txn.PoolTx, h *holding, tiers calendar.Tiers) admission.View {
	c := h.commitments
	v := admission.View{
		Now: tx.Now(), PoolView: admission.PoolView{Pool: p.Pool.Pool, Slots: p.Places, Tiers: tiers,
			Speculative: p.SpeculativeBookings(), Used: p.Split},
		Limits: h.org.Limits, Committed: &c.All, SpeculativeCommitments: &c.Speculative, Cohort: h.cohort,
		Brief: tx.OnlyCounts(),
	}
	h.addCaps(&v)
	v.Pause = h.pause
	return v
}

// displaceReservations cancels the speculative reservations that a decision pushes out.
func displaceReservations(tx *txn.Tx, p *txn.PoolTx, ids []string, by txn.Verdict) error {
	for _, id := range ids {
		r, ok := p.FindReservation(id)
		if !ok {
			continue
		}
		message := "gave way to a request that outranks it"
		if _, err := tx.StepReservation(p, r, reservation.Cancel, "displaced", message); err != nil {
			return err
		}
		tx.AttachDecision(by.DecisionRecord(ledger.DecisionDisplacement))
		if r.OrganizationID != tx.Actor.OrganizationID { // who took the place is not its owner's to know
			tx.Change.Events[len(tx.Change.Events)-1].Actor = ledger.SystemActor("").KeyID
		}
		MarkIdle(tx, p, r.Slots)
	}
	return nil
}

// MarkIdle notes that work on the slots ended now, from which idleness counts, unless that of others goes on.
func MarkIdle(tx *txn.Tx, p *txn.PoolTx, slots []int) {
	for _, slot := range slots {
		if n, ok := p.NodeOnSlot(slot); ok && n.State() == node.Ready && !isHeld(p, n) {
			n.IdleSince = tx.Now()
			p.PutNode(n)
		}
	}
}

// isHeld reports whether somebody has a device of a node.
func isHeld(p *txn.PoolTx, n node.Node) bool {
	return slices.ContainsFunc(n.Devices, func(d capacity.Device) bool { return p.Taken[d.UUID] != "" })
}

// FreeDevices picks the allocation's devices on its slots, or reports that a node is
// not ready or not empty enough.
func FreeDevices(p *txn.PoolTx, a allocation.Allocation) ([]allocation.Held, bool) {
	var held []allocation.Held
	for i, slot := range a.Slots {
		n, ok := p.NodeOnSlot(slot)
		if !ok || n.State() != node.Ready {
			return nil, false
		}
		left := a.Shape.On(i)
		for _, d := range inOrderOfUse(p, n.Devices) {
			if left > 0 && p.Taken[d.UUID] == "" && !p.IsDirty(d.UUID) {
				held = append(held, allocation.Held{NodeID: n.ID, UUID: d.UUID})
				left--
			}
		}
		if left > 0 {
			return nil, false
		}
	}
	return held, true
}

// inOrderOfUse puts those shares first whose GPU has the fewest other holders, for each of which it has more time and
// memory. Devices that are not shared keep their order.
func inOrderOfUse(p *txn.PoolTx, devices []capacity.Device) []capacity.Device {
	if p.Pool.Shares() == 1 {
		return devices
	}
	holders := map[string]int{}
	for _, d := range devices {
		if p.Taken[d.UUID] != "" || p.IsDirty(d.UUID) {
			holders[capacity.GPUOf(d.UUID)]++
		}
	}
	rank := make(map[string]int, len(devices)) // with those shares of its GPU that go before it
	for _, d := range devices {
		gpu := capacity.GPUOf(d.UUID)
		rank[d.UUID] = holders[gpu]
		if p.Taken[d.UUID] == "" && !p.IsDirty(d.UUID) {
			holders[gpu]++
		}
	}
	ordered := slices.Clone(devices)
	slices.SortStableFunc(ordered, func(a, b capacity.Device) int { return cmp.Compare(rank[a.UUID], rank[b.UUID]) })
	return ordered
}

// CountFree counts the devices of a node that somebody could have at once.
func CountFree(p *txn.PoolTx, n node.Node) (free int) {
	for _, d := range n.Devices {
		if p.Taken[d.UUID] == "" && !p.IsDirty(d.UUID) {
			free++
		}
	}
	return free
}
