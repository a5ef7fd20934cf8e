package ledger

import (
	"github.com/forewarm/forewarm/core/admission"
	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
)

// partsFor lists the sums that what a key made in a class belongs to: the
// organization's, the key's, the person's if it is somebody's key, and that of
// speculative reservations.
func (c *Commitments) partsFor(class reservation.Class, madeBy, userID string) []*quota.Commitments {
	sums := append(make([]*quota.Commitments, 0, 4), &c.All, partOf(&c.ByKey, madeBy))
	if userID != "" {
		sums = append(sums, partOf(&c.ByUser, userID))
	}
	if class == reservation.Speculative {
		sums = append(sums, &c.Speculative)
	}
	return sums
}

func partOf(of *map[string]*quota.Commitments, id string) *quota.Commitments {
	if *of == nil {
		*of = map[string]*quota.Commitments{}
	}
	sum := (*of)[id]
	if sum == nil {
		sum = &quota.Commitments{}
		(*of)[id] = sum
	}
	return sum
}

// Reservation counts a reservation of the pool, or takes it out. One that waits
// for a place is not promised yet and costs nothing; what ended costs what it
// held.
func (c *Commitments) Reservation(p capacity.Pool, r *reservation.Reservation, out bool) {
	if r.Live() && !r.Placed() {
		return
	}
	var held quota.Vector
	if r.Placed() {
		held = quota.Demand(p, r.Shape)
	}
	for _, part := range c.partsFor(r.Class, r.MadeBy, r.UserID) {
		if out {
			part.Remove(r.Window, held, ReservationSpend(r))
		} else {
			part.Add(r.Window, held, ReservationSpend(r))
		}
	}
}

// ReservationSpend is what a reservation takes of a budget: its window while it
// is promised, what it really held once it is over.
func ReservationSpend(r *reservation.Reservation) quota.Spend {
	if r.Live() {
		return quota.SpendOf(r.Window, r.Shape.GPUs(), r.Cost)
	}
	if r.WarmedAt.IsZero() {
		return quota.Spend{Cost: r.Cost}
	}
	return quota.Spend{Cost: r.Cost, GPUSeconds: int64(r.EndedAt.Sub(r.WarmedAt).Seconds()) * int64(r.Shape.GPUs())}
}

// Allocation counts an allocation of the pool, or takes it out. Observed work counts for
// nothing: its scheduler has limits of its own.
func (c *Commitments) Allocation(p capacity.Pool, a *allocation.Allocation, out bool) {
	if a.Observed() {
		return
	}
	var held quota.Vector
	if a.Live() {
		held = quota.Demand(p, a.Shape)
	}
	for _, part := range c.partsFor("", a.HeldBy, a.UserID) {
		if out {
			part.Remove(a.Window, held, AllocationSpend(p, a))
		} else {
			part.Add(a.Window, held, AllocationSpend(p, a))
		}
	}
}

// AllocationSpend is what an allocation takes of a budget: its lease while it is
// awaited or held, what it really held once it is over. The boot that it waits for
// is in its Window, and costs it nothing.
func AllocationSpend(p capacity.Pool, a *allocation.Allocation) quota.Spend {
	length := a.Lease
	switch {
	case a.Observed(): // its scheduler has limits of its own
		return quota.Spend{}
	case !a.Live() && a.ActiveAt.IsZero():
		return quota.Spend{}
	case !a.Live():
		length = a.EndedAt.Sub(a.ActiveAt)
	case !a.ActiveAt.IsZero():
		length = a.LeaseUntil.Sub(a.ActiveAt)
	}
	return quota.Spend{Cost: admission.Cost(p, a.Shape, length),
		GPUSeconds: int64(length.Seconds()) * int64(a.Shape.GPUs())}
}

// Spend counts what ended.
func (c *Commitments) Spend(s Spend) {
	for _, part := range c.partsFor(s.Class, s.MadeBy, s.UserID) {
		part.Spend(s.Day, quota.Spend{Cost: s.Cost, GPUSeconds: s.GPUSeconds})
	}
}
