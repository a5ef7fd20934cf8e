package ledger

import (
	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/gpu"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// parts lists the sums that what a key made in a class belongs to.
func (c *Commitments) parts(class reservation.Class, madeBy string) []*quota.Commitments {
	own := c.ByKey[madeBy]
	if own == nil {
		own = &quota.Commitments{}
		c.ByKey[madeBy] = own
	}
	if class == reservation.Speculative {
		return []*quota.Commitments{&c.All, own, &c.Guessed}
	}
	return []*quota.Commitments{&c.All, own}
}

// reservation counts a reservation of the pool, or takes it out. What was not
// promised yet, or never, costs nothing; what ended costs what it held.
func (c *Commitments) reservation(p gpu.Pool, r *reservation.Reservation, out bool) {
	if r.State() == reservation.AwaitingApproval || r.State() == reservation.Rejected {
		return
	}
	var held quota.Vector
	if r.Placed() {
		held = quota.Demand(p, r.Shape)
	}
	for _, part := range c.parts(r.Class, r.MadeBy) {
		if out {
			part.Remove(r.Window, held, reservationSpend(r))
		} else {
			part.Add(r.Window, held, reservationSpend(r))
		}
	}
}

// reservationSpend is what a reservation takes of a budget: its window while it
// is promised, what it really held once it is over.
func reservationSpend(r *reservation.Reservation) quota.Spend {
	if r.Live() {
		return quota.SpendOf(r.Window, r.Shape.GPUs(), r.Cost)
	}
	if r.WarmedAt.IsZero() {
		return quota.Spend{Cost: r.Cost}
	}
	return quota.Spend{Cost: r.Cost, GPUSeconds: int64(r.EndedAt.Sub(r.WarmedAt).Seconds()) * int64(r.Shape.GPUs())}
}

// allocation counts an allocation of the pool, or takes it out.
func (c *Commitments) allocation(p gpu.Pool, a *allocation.Allocation, out bool) {
	var held quota.Vector
	if a.Live() {
		held = quota.Demand(p, a.Shape)
	}
	for _, part := range c.parts("", a.HeldBy) {
		if out {
			part.Remove(a.Window, held, allocationSpend(p, a))
		} else {
			part.Add(a.Window, held, allocationSpend(p, a))
		}
	}
}

// allocationSpend is what an allocation takes of a budget: its lease while it is
// held, what it really held once it is over.
func allocationSpend(p gpu.Pool, a *allocation.Allocation) quota.Spend {
	length := a.Window.Length()
	switch {
	case !a.Live() && a.ActiveAt.IsZero():
		return quota.Spend{}
	case !a.Live():
		length = a.EndedAt.Sub(a.ActiveAt)
	}
	return quota.Spend{Cost: admission.Cost(p, a.Shape, length), GPUSeconds: int64(length.Seconds()) * int64(a.Shape.GPUs())}
}

// spend counts what ended.
func (c *Commitments) spend(s Spend) {
	for _, part := range c.parts(s.Class, s.MadeBy) {
		part.Spend(s.Day, quota.Spend{Cost: s.Cost, GPUSeconds: s.GPUSeconds})
	}
}
