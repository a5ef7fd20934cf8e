package jobs

import (
	"time"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// bookedAfter tells until when GPUs are free that are reserved and whose reservation ends. Nothing counts that
// admission could move to other slots or displace, unless the whole pool is full: admission has the last word, and this
// spares only what it would refuse for sure.
type bookedAfter struct {
	pool  ledger.PoolState
	all   *calendar.Profile         // GPUs of the pool that are booked; nil: not counted yet
	stays map[int]*calendar.Profile // of those, by slot, what stays there
}

// freeUntil is when all GPUs of a slot are surely booked, at an instant or later; zero: nobody can say.
func (b *bookedAfter) freeUntil(slot int, from time.Time) time.Time {
	if b.all == nil {
		b.count()
	}
	until := firstFull(b.all, b.pool.Pool.MaxNodes*b.pool.Pool.PerNode, from)
	if stays := b.stays[slot]; stays != nil {
		if full := firstFull(stays, b.pool.Pool.PerNode, from); until.IsZero() || !full.IsZero() && full.Before(until) {
			until = full
		}
	}
	return until
}

// freeBy are those GPUs of what is reserved that are not surely booked by others before an instant.
func (b *bookedAfter) freeBy(rows []reservation.Reservation, at time.Time) (free []reservation.Reservation) {
	for _, r := range rows {
		taken := map[int]int{}
		for i, slot := range r.Slots {
			if until := b.freeUntil(slot, r.Window.End); !until.IsZero() && until.Before(at) {
				taken[slot] = r.Shape.On(i)
			}
		}
		rest, _, any := r.Carve(taken, func() string { return "" })
		if !any {
			rest = []reservation.Reservation{r}
		}
		free = append(free, rest...)
	}
	return free
}

func (b *bookedAfter) count() {
	b.all, b.stays = &calendar.Profile{}, map[int]*calendar.Profile{}
	for _, r := range b.pool.Reservations {
		if r.Placed() && r.Class == reservation.Guaranteed {
			b.add(r.Booking(), r.State() != reservation.Booked)
		}
	}
	for _, a := range b.pool.Allocations {
		if a.Live() && !a.Observed() {
			b.add(a.Booking(), true)
		}
	}
}

// add counts a booking, as far as the pool has its slots.
func (b *bookedAfter) add(x calendar.Booking, stays bool) {
	for i, slot := range x.Slots {
		if slot >= b.pool.Pool.MaxNodes {
			continue
		}
		b.all.Add(x.Interval, x.Shape().On(i))
		if !stays {
			continue
		}
		if b.stays[slot] == nil {
			b.stays[slot] = &calendar.Profile{}
		}
		b.stays[slot].Add(x.Interval, x.Shape().On(i))
	}
}

// firstFull is when so many GPUs are booked, at an instant or later; zero: never.
func firstFull(booked *calendar.Profile, gpus int, from time.Time) time.Time {
	for at, more := from, true; more; at, more = booked.Next(at) {
		if booked.At(at) >= gpus {
			return at
		}
	}
	return time.Time{}
}
