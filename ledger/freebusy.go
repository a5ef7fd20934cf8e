package ledger

import (
	"sync"

	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
)

// FreeBusy is what a pool has free, in steps of time.
type FreeBusy struct {
	Pool  Pool
	Steps []FreeStep
}

// FreeStep is what is free during the whole of one step.
type FreeStep struct {
	calendar.Level
	Workloads []WorkloadLevel // of a split pool: online, then batch
}

// WorkloadLevel is what a workload has of a split pool during one step, in GPUs.
type WorkloadLevel struct {
	Workload    capacity.Workload
	Share, Used int
	Free        int // what it may still have
}

// BookedByWorkload adds up what each workload has booked of the pool.
func (s PoolState) BookedByWorkload() map[capacity.Workload]*calendar.Profile {
	used := map[capacity.Workload]*calendar.Profile{capacity.Online: {}, capacity.Batch: {}}
	for _, r := range s.Reservations {
		if r.Placed() {
			used[r.Workload].Add(r.Window, r.Shape.GPUs())
		}
	}
	for _, a := range s.Allocations {
		if a.Live() {
			used[a.Workload].Add(a.Window, a.Shape.GPUs())
		}
	}
	return used
}

// BuildCalendar returns the calendar of all that takes GPUs of the pool.
func (s PoolState) BuildCalendar() *calendar.Slots { return s.Snapshot().BuildCalendar() }

// bookedOnce is what many ask of a state that none of them changes.
type bookedOnce struct {
	once     sync.Once
	calendar *calendar.Slots
	workload map[capacity.Workload]*calendar.Profile
}

// Shared returns the state for many to look at: what Booked returns is then made for the
// first of them alone.
func (s PoolState) Shared() PoolState {
	s.booked = &bookedOnce{}
	return s
}

// Booked returns BuildCalendar and BookedByWorkload, only to be looked at.
func (s PoolState) Booked() (*calendar.Slots, map[capacity.Workload]*calendar.Profile) {
	b := s.booked
	if b == nil {
		b = &bookedOnce{}
	}
	b.once.Do(func() { b.calendar, b.workload = s.BuildCalendar(), s.BookedByWorkload() })
	return b.calendar, b.workload
}

// Recommendation is a reservation that succeeds when it is asked for at once.
type Recommendation struct {
	PoolID string
	Shape  capacity.Shape
	Window calendar.Interval
	Cost   money.MicroUSD
}
