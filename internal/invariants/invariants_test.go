package invariants_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/calendar"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/internal/invariants"
	"github.com/forewarm/forewarm/ledger"
)

var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func hourWindow(from, to int) calendar.Interval {
	return calendar.Interval{Start: monday.Add(time.Duration(from) * time.Hour),
		End: monday.Add(time.Duration(to) * time.Hour)}
}

func bookedReservation(id string, window calendar.Interval, perNode int, slots ...int) reservation.Reservation {
	r, err := reservation.New(reservation.Reservation{ID: id, OrganizationID: "org", Window: window, Version: 1,
		Shape: capacity.Shape{Nodes: len(slots), PerNode: perNode}, Slots: slots}, reservation.Booked, monday)
	if err != nil {
		panic(err)
	}
	return r
}

func cancelReservation(r reservation.Reservation, reason string) reservation.Reservation {
	r, err := r.Apply(reservation.Cancel, reason, monday)
	if err != nil {
		panic(err)
	}
	r.Version++
	return r
}

func activeAllocation(id string, window calendar.Interval, slot int, devices ...string) allocation.Allocation {
	a := allocation.New(allocation.Allocation{ID: id, OrganizationID: "org", Window: window, Version: 1,
		Lease: window.Length(),
		Shape: capacity.Shape{Nodes: 1, PerNode: len(devices)}, Slots: []int{slot}}, monday)
	for _, d := range devices {
		a.Devices = append(a.Devices, allocation.Held{NodeID: "nod", UUID: d})
	}
	a, err := a.Apply(allocation.Activate, "nodes_ready", monday)
	if err != nil {
		panic(err)
	}
	return a
}

// inCohort are the limits of a member.
func inCohort(gpus, borrowing, lending int64) quota.Limits {
	l := quota.Limits{GPUs: int(gpus), Cohort: "lab"}
	l.Borrowing[quota.GPUs], l.Lending[quota.GPUs] = quota.AtMost(borrowing), quota.AtMost(lending)
	return l
}

// soundRows is a world in which everything holds: a pool of two slots of two GPUs.
func soundRows() invariants.Rows {
	counted := &calendar.Profile{}
	counted.Add(hourWindow(1, 3), 2)
	counted.Add(hourWindow(3, 4), 4)
	counted.Add(hourWindow(0, 1), 2)
	return invariants.Rows{
		Organizations: []ledger.Organization{{ID: "org", Limits: quota.Limits{GPUs: 4}}},
		Pools: []ledger.PoolState{{
			Pool:  ledger.Pool{Pool: capacity.Pool{ID: "pol", PerNode: 2, MaxNodes: 2}},
			Nodes: []node.Node{node.New("nod", "pol", 0, 1, monday)},
			Reservations: []reservation.Reservation{bookedReservation("rsv_1", hourWindow(1, 3), 1, 0, 1),
				bookedReservation("rsv_2", hourWindow(3, 4), 2, 0, 1)},
			Allocations: []allocation.Allocation{activeAllocation("alc_1", hourWindow(0, 1), 0, "gpu-0", "gpu-1")},
		}},
		Committed: map[string]*calendar.Profile{"org": counted},
		OverReservations: []reservation.Reservation{cancelReservation(bookedReservation("rsv_0", hourWindow(0, 1), 1,
			0), "asked")},
		Events: []ledger.Event{{Type: "reservation.cancelled", Subject: "rsv_0", Reason: "asked"}},
	}
}

// TestPlanted breaks one thing at a time: each must be found, and nothing else.
func TestPlanted(t *testing.T) {
	t.Parallel()
	for name, planted := range map[string]struct {
		plant func(*invariants.Rows)
		want  []invariants.Invariant
	}{
		"nothing": {func(*invariants.Rows) {}, nil},
		"a GPU in two hands": {func(r *invariants.Rows) {
			a := activeAllocation("alc_2", hourWindow(0, 1), 1, "gpu-1")
			r.Pools[0].Allocations = append(r.Pools[0].Allocations, a)
			r.Committed["org"].Add(a.Window, 1)
		}, []invariants.Invariant{invariants.OneHolder}},
		"fewer GPUs than promised": {func(r *invariants.Rows) {
			r.Pools[0].Allocations[0].Devices = r.Pools[0].Allocations[0].Devices[:1]
		}, []invariants.Invariant{invariants.OneHolder}},
		"two nodes on a slot": {func(r *invariants.Rows) {
			r.Pools[0].Nodes = append(r.Pools[0].Nodes, node.New("nod_2", "pol", 0, 2, monday))
		}, []invariants.Invariant{invariants.OneNode}},
		"a slot booked twice": {func(r *invariants.Rows) {
			r.Pools[0].Reservations[1].Slots = []int{0, 0}
		}, []invariants.Invariant{invariants.Capacity, invariants.Capacity}},
		"a moment too long, which is over": {func(r *invariants.Rows) {
			r.Pools[0].Reservations[0].Window.End = hourWindow(3, 4).Start.Add(time.Microsecond)
			r.Committed["org"].Add(calendar.Interval{Start: hourWindow(3, 4).Start,
				End: hourWindow(3, 4).Start.Add(time.Microsecond)}, 2)
			r.Now = hourWindow(3, 4).Start.Add(time.Microsecond)
		}, []invariants.Invariant{invariants.Quota}},
		"a second too long": {func(r *invariants.Rows) {
			r.Pools[0].Reservations[0].Window.End = hourWindow(3, 4).Start.Add(time.Microsecond)
			r.Committed = nil
			r.Organizations[0].Limits.GPUs = 8
		}, []invariants.Invariant{invariants.Capacity, invariants.Capacity}},
		"a place outside": {func(r *invariants.Rows) {
			r.Pools[0].Reservations[0].Slots = []int{0, 2}
		}, []invariants.Invariant{invariants.Capacity}},
		"no place": {func(r *invariants.Rows) {
			r.Pools[0].Reservations[0].Slots = nil
		}, []invariants.Invariant{invariants.Capacity}},
		"more than the limit": {func(r *invariants.Rows) {
			r.Organizations[0].Limits.GPUs = 3
		}, []invariants.Invariant{invariants.Quota}},
		"another count": {func(r *invariants.Rows) {
			r.Committed["org"].Add(hourWindow(2, 3), 1)
		}, []invariants.Invariant{invariants.Quota}},
		"more than it may borrow": {func(r *invariants.Rows) {
			r.Organizations[0].Limits = inCohort(2, 1, 2)
			r.Organizations = append(r.Organizations, ledger.Organization{ID: "lender", Limits: inCohort(4, 0, 4)})
		}, []invariants.Invariant{invariants.Quota}},
		"as much as it may borrow": {func(r *invariants.Rows) {
			r.Organizations[0].Limits = inCohort(2, 2, 2)
			r.Organizations = append(r.Organizations, ledger.Organization{ID: "lender", Limits: inCohort(4, 0, 2)})
		}, nil},
		"more than the others lend": {func(r *invariants.Rows) {
			r.Organizations[0].Limits = inCohort(2, 2, 2)
			r.Organizations = append(r.Organizations, ledger.Organization{ID: "lender", Limits: inCohort(4, 0, 1)})
		}, []invariants.Invariant{invariants.Quota}},
		"negative cost": {func(r *invariants.Rows) {
			r.Pools[0].Reservations[0].Cost = -1
		}, []invariants.Invariant{invariants.Money}},
		"an end without an event": {func(r *invariants.Rows) { r.Events = []ledger.Event{} },
			[]invariants.Invariant{invariants.NoSilence}},
		"an end without a reason": {func(r *invariants.Rows) {
			r.OverReservations[0] = cancelReservation(bookedReservation("rsv_0", hourWindow(0, 1), 1, 0), "")
		}, []invariants.Invariant{invariants.NoSilence}},
		"an event about another end": {func(r *invariants.Rows) { r.Events[0].Type = "reservation.expired" },
			[]invariants.Invariant{invariants.NoSilence}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := soundRows()
			planted.plant(&rows)
			var got []invariants.Invariant
			for _, v := range invariants.Check(rows) {
				got = append(got, v.Invariant)
			}
			require.Equal(t, planted.want, got, invariants.Check(rows))
		})
	}
}

func TestBetween(t *testing.T) {
	t.Parallel()
	before, after := soundRows(), soundRows()
	require.Empty(t, invariants.Between(before, after))

	gone := after.Pools[0].Reservations[0]
	after.Pools[0].Reservations = after.Pools[0].Reservations[1:]
	after.OverReservations = append(after.OverReservations, cancelReservation(gone, "asked"))
	require.Empty(t, invariants.Between(before, after), "a promise may end")
	back := invariants.Between(after, before)
	require.Len(t, back, 1)
	require.Equal(t, invariants.Transitions, back[0].Invariant)
	require.Equal(t, "I16 rsv_1: went from cancelled to booked", back[0].String())

	after.OverReservations[1].Version = 1
	require.Len(t, invariants.Between(before, after), 1, "a change without a new version")
}
