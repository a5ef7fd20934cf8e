package ledgertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

// manyRowsAreAsGoodAsOne: a store may write many rows in another way than a few,
// and in parts.
func manyRowsAreAsGoodAsOne(w *world) {
	saveGround(w)
	const n = 2100
	var c ledger.Change
	for i := range n {
		r := bookedReservation(w, fmt.Sprintf("rsv_%05d", i), "org_1", "pol_1", day.Add(time.Duration(i)*time.Minute))
		r.Name = fmt.Sprintf("name \"{%d},\\ü", i)
		c.Reservations = append(c.Reservations, r)
		c.Events = append(c.Events, newEvent("org_1", r.ID))
	}
	w.mustSave(c)
	toldInOrder(w, c.Events)
	changed := slices.Clone(c.Reservations)
	for i := range changed {
		changed[i].Version = 1
		changed[i] = applyEvents(w, changed[i], day.Add(time.Hour), reservation.Warm)
		changed[i].Slots = []int{i}
	}
	slices.Reverse(changed)
	w.mustSave(ledger.Change{Reservations: changed})
	stored := func(i int) reservation.Reservation {
		return readValue(w, func(r ledger.Reader) (reservation.Reservation, error) {
			return r.Reservation(everything, fmt.Sprintf("rsv_%05d", i))
		})
	}
	for _, i := range []int{0, 1, n / 2, n - 2, n - 1} {
		want := changed[n-1-i]
		want.Version = 2
		require.Equal(w, want, stored(i))
	}
	for i := range changed {
		changed[i].Version, changed[i].Name = 2, "another"
	}
	changed[n-7].Version = 1
	require.ErrorIs(w, w.save(ledger.Change{Reservations: changed}), ledger.ErrConflict, "one of them is stale")
	require.Equal(w, c.Reservations[0].Name, stored(0).Name, "nothing of it is there")
	fresh := bookedReservation(w, "rsv_new", "org_1", "pol_1", day)
	require.ErrorIs(w, w.save(ledger.Change{Reservations: append(changed[:5:5], fresh, c.Reservations[9])}),
		ledger.ErrTaken)
	require.ErrorIs(w, w.inTx(func(tx ledger.Tx) error { _, err := tx.Reservation(everything, "rsv_new"); return err }),
		ledger.ErrNotFound)
}

// toldInOrder reads events page by page until all are visible.
func toldInOrder(w *world, want []ledger.Event) {
	w.Helper()
	var told []ledger.Event
	require.Eventually(w, func() bool {
		after := int64(0)
		if len(told) > 0 {
			after = told[len(told)-1].Seq
		}
		told = append(told, readEvents(w, after)...)
		return len(told) >= len(want)
	}, time.Minute, time.Millisecond)
	for i, e := range told {
		require.Equal(w, want[i].Subject, e.Subject, "the order they were told in")
	}
}

// manyMachinesAndTheirDevices: what belongs to a row comes and goes with it.
func manyMachinesAndTheirDevices(w *world) {
	saveGround(w)
	const n = 9
	var nodes []node.Node
	var held []allocation.Allocation
	for i := range n {
		machine := readyNode(w, fmt.Sprintf("nod_%02d", 10+i), "pol_1", 10+i, day)
		nodes = append(nodes, machine)
		held = append(held, activeAllocation(w, fmt.Sprintf("alc_%02d", i), "org_1", machine, day, 3, 1))
	}
	w.mustSave(ledger.Change{Nodes: nodes, Allocations: held})
	for i := range n {
		nodes[i].Version, held[i].Version = 1, 1
		other := capacity.Device{UUID: gpuUUID(nodes[i].ID, 9), Index: 4, Model: "H100", MemoryMiB: 9}
		nodes[i].Devices = append([]capacity.Device{other}, nodes[i].Devices[1:]...)
		slices.SortFunc(nodes[i].Devices, func(a, b capacity.Device) int { return a.Index - b.Index })
		held[i] = releasedAllocation(w, held[i], day.Add(time.Hour))
	}
	var again []allocation.Allocation
	for i := range n {
		id := fmt.Sprintf("alc_%02d", n+i)
		again = append(again, activeAllocation(w, id, "org_2", nodes[i], day.Add(time.Hour), 1))
	}
	w.mustSave(ledger.Change{Nodes: nodes, Allocations: append(again, held...)})
	state := readValue(w, func(r ledger.Reader) (ledger.PoolState, error) { return r.PoolState("pol_1") })
	for i := range n {
		nodes[i].Version, again[i].Version = 2, 1
		require.Contains(w, state.Nodes, nodes[i])
	}
	require.Equal(w, again, state.Allocations)
}

// manyTasksOfSomeKeys: tasks whose key exists are left alone, the others are added.
func manyTasksOfSomeKeys(w *world) {
	keyed := func(id, key string) ledger.Task {
		t := newTask(id, day)
		t.Key = key
		return t
	}
	w.mustSave(ledger.Change{Tasks: []ledger.Task{keyed("tsk_0", "plan:b")}})
	w.mustSave(ledger.Change{Tasks: []ledger.Task{
		keyed("tsk_1", "plan:a"), keyed("tsk_2", "plan:b"), keyed("tsk_3", ""), keyed("tsk_4", ""),
		keyed("tsk_5", "plan:c"),
	}})
	counts := readValue(w, func(r ledger.Reader) (map[ledger.TaskState]int, error) { return r.Tasks() })
	require.Equal(w, map[ledger.TaskState]int{ledger.TaskReady: 5}, counts)
	w.readSnapshot(func(r ledger.Reader) error {
		_, err := r.Task("tsk_2")
		require.ErrorIs(w, err, ledger.ErrNotFound)
		return nil
	})
}
