package ledger_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

var (
	// dawn is when what these tests book begins.
	dawn = time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	// fourGPUs is a pool whose GPU-hour costs 2 $.
	fourGPUs = capacity.Pool{Name: "lab", PerNode: 4, Price: 8 * money.USD, MemoryMiB: 1024, MaxNodes: 2}
	// sixGPUs is a shape on two nodes.
	sixGPUs = capacity.Shape{Nodes: 2, PerNode: 3}
)

// bookedFor returns a reservation of six GPUs for an hour that lived through events,
// a minute apart.
func bookedFor(t *testing.T, class reservation.Class, from reservation.State,
	events ...reservation.Event) reservation.Reservation {
	t.Helper()
	r, err := reservation.New(reservation.Reservation{ID: "rsv_1", MadeBy: "key_1", UserID: "usr_1", Class: class,
		Window: calendar.Interval{Start: dawn, End: dawn.Add(time.Hour)}, Shape: sixGPUs, Slots: []int{0, 1},
		Cost: 12 * money.USD}, from, dawn)
	require.NoError(t, err)
	for i, e := range events {
		r, err = r.Apply(e, "", dawn.Add(time.Duration(i+1)*time.Minute))
		require.NoError(t, err)
	}
	return r
}

// allocatedFor returns an allocation of six GPUs for an hour that lived through
// events, a minute apart.
func allocatedFor(t *testing.T, events ...allocation.Event) allocation.Allocation {
	t.Helper()
	a := allocation.New(allocation.Allocation{ID: "alc_1", HeldBy: "key_1", Shape: sixGPUs, Slots: []int{0, 1},
		Lease: time.Hour, Window: calendar.Interval{Start: dawn, End: dawn.Add(90 * time.Minute)}}, dawn)
	for i, e := range events {
		var err error
		a, err = a.Apply(e, "", dawn.Add(time.Duration(i+1)*time.Minute))
		require.NoError(t, err)
	}
	return a
}

func TestWhatAReservationTakesOfABudget(t *testing.T) {
	t.Parallel()
	whole := quota.Spend{Cost: 12 * money.USD, GPUSeconds: 6 * 3600}
	for name, c := range map[string]struct {
		r    reservation.Reservation
		want quota.Spend
	}{
		"promised": {bookedFor(t, reservation.Guaranteed, reservation.Booked), whole},
		"warm": {bookedFor(t, reservation.Guaranteed, reservation.Booked, reservation.Warm, reservation.BecomeReady),
			whole},
		"over before it was warmed": {bookedFor(t, reservation.Guaranteed, reservation.Booked, reservation.Cancel),
			quota.Spend{Cost: 12 * money.USD}},
		"over two minutes after it was": {bookedFor(t, reservation.Guaranteed, reservation.Booked, reservation.Warm,
			reservation.BecomeReady, reservation.Claim), quota.Spend{Cost: 12 * money.USD, GPUSeconds: 6 * 120}},
	} {
		require.Equal(t, c.want, ledger.ReservationSpend(&c.r), name)
	}
}

func TestWhatAnAllocationTakesOfABudget(t *testing.T) {
	t.Parallel()
	extended := allocatedFor(t, allocation.Activate)
	extended.LeaseUntil = extended.LeaseUntil.Add(time.Hour)
	for name, c := range map[string]struct {
		a       allocation.Allocation
		minutes int64
	}{
		"awaited":         {allocatedFor(t), 60},
		"held":            {allocatedFor(t, allocation.Activate), 60},
		"extended":        {extended, 120},
		"given up":        {allocatedFor(t, allocation.Cancel), 0},
		"over in two":     {allocatedFor(t, allocation.Activate, allocation.Release, allocation.Finish), 2},
		"over at its end": {allocatedFor(t, allocation.Activate, allocation.Expire), 1},
	} {
		want := quota.Spend{Cost: money.MicroUSD(c.minutes) * 12 * money.USD / 60, GPUSeconds: c.minutes * 60 * 6}
		require.Equal(t, want, ledger.AllocationSpend(fourGPUs, &c.a), name)
	}
}

// What is counted is counted for the organization, the key, the person if there is
// one, and speculative ones if it is one; and taken out it leaves nothing.
func TestWhatCountsForWhom(t *testing.T) {
	t.Parallel()
	half := dawn.Add(30 * time.Minute)
	held := quota.Demand(fourGPUs, sixGPUs)
	for name, c := range map[string]struct {
		change              func(c *ledger.Commitments, out bool)
		held                quota.Vector
		cost                money.MicroUSD
		person, speculative bool
	}{
		"a promise": {countReservation(bookedFor(t, reservation.Guaranteed, reservation.Booked)), held, 12 * money.USD,
			true, false},
		"a speculative one": {countReservation(bookedFor(t, reservation.Speculative, reservation.Booked)),
			held, 12 * money.USD, true, true},
		"a speculative one that is over": {countReservation(bookedFor(t, reservation.Speculative, reservation.Booked,
			reservation.Cancel)), quota.Vector{}, 12 * money.USD, true, true},
		"one that waits for a place": {countReservation(bookedFor(t, reservation.Guaranteed, reservation.Waitlisted)),
			quota.Vector{}, 0, false, false},
		"an allocation": {countAllocation(allocatedFor(t, allocation.Activate)), held, 12 * money.USD, false, false},
		"an allocation that is over": {countAllocation(allocatedFor(t, allocation.Activate, allocation.Expire)),
			quota.Vector{}, 12 * money.USD / 60, false, false},
	} {
		var sums ledger.Commitments
		counted := func(part *quota.Commitments, counts bool, of string) {
			if part == nil {
				part = &quota.Commitments{}
			}
			want, cost := c.held, c.cost
			if !counts {
				want, cost = quota.Vector{}, 0
			}
			require.Equal(t, want, part.At(half), "%s: held %s", name, of)
			require.Equal(t, cost, part.On(dawn).Cost, "%s: spent %s", name, of)
		}
		for range 2 { // the second time finds the sums of the first
			c.change(&sums, false)
			counted(&sums.All, true, "by all")
			counted(sums.ByKey["key_1"], true, "by the key")
			counted(sums.ByUser["usr_1"], c.person, "by the person")
			counted(&sums.Speculative, c.speculative, "speculative")
			c.change(&sums, true)
			for of, part := range map[string]*quota.Commitments{"all": &sums.All, "key": sums.ByKey["key_1"],
				"person": sums.ByUser["usr_1"], "speculative": &sums.Speculative} {
				counted(part, false, "by "+of+" after it was taken out")
			}
		}
	}
}

func countReservation(r reservation.Reservation) func(*ledger.Commitments, bool) {
	return func(c *ledger.Commitments, out bool) { c.Reservation(fourGPUs, &r, out) }
}

func countAllocation(a allocation.Allocation) func(*ledger.Commitments, bool) {
	return func(c *ledger.Commitments, out bool) { c.Allocation(fourGPUs, &a, out) }
}

func TestWhatEndedCountsOnItsDay(t *testing.T) {
	t.Parallel()
	var sums ledger.Commitments
	sums.Spend(ledger.Spend{MadeBy: "key_1", Class: reservation.Speculative, Day: dawn, Cost: money.USD, GPUSeconds: 7})
	sums.Spend(ledger.Spend{MadeBy: "key_2", UserID: "usr_1", Day: dawn, Cost: 2 * money.USD, GPUSeconds: 5})
	require.Equal(t, quota.Spend{Cost: 3 * money.USD, GPUSeconds: 12}, sums.All.On(dawn))
	require.Equal(t, quota.Spend{Cost: money.USD, GPUSeconds: 7}, sums.ByKey["key_1"].On(dawn))
	require.Equal(t, quota.Spend{Cost: money.USD, GPUSeconds: 7}, sums.Speculative.On(dawn))
	require.Equal(t, quota.Spend{Cost: 2 * money.USD, GPUSeconds: 5}, sums.ByUser["usr_1"].On(dawn))
	require.Zero(t, sums.All.On(dawn.AddDate(0, 0, 1)))
}
