package ledgertest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/ledger"
)

func oneSlotHasOneMachine(w *world) {
	first := saveGround(w)
	second := node.New("nod_2", "pol_1", 0, 2, day)
	require.ErrorIs(w, w.save(ledger.Change{Nodes: []node.Node{second}}), ledger.ErrTaken)
	w.mustSave(ledger.Change{Nodes: []node.Node{node.New("nod_3", "pol_2", 0, 1, day)}}) // another pool's slot
	first.Version = 1
	first = applyEvents(w, first, day.Add(time.Hour), node.Drain, node.Retire)
	require.ErrorIs(w, w.save(ledger.Change{Nodes: []node.Node{first, second}}), ledger.ErrTaken, "it is still billed")
	first = applyEvents(w, first, day.Add(time.Hour), node.Confirm)
	// Within one change the slot is freed before it is taken, whatever the order of
	// its rows.
	w.mustSave(ledger.Change{Nodes: []node.Node{second, first}})
	generation := func(slot int) int {
		return readValue(w, func(r ledger.Reader) (int, error) { return r.Generation("pol_1", slot) })
	}
	require.Equal(w, 2, generation(0))
	require.Equal(w, 0, generation(1))
}

func aDeletedPoolIsFoundByItsName(w *world) {
	lost := func(name string) (ledger.Pool, error) {
		var p ledger.Pool
		err := w.store.Read(w.Context(), func(r ledger.Reader) (err error) {
			p, err = r.DeletedPool(name)
			return err
		})
		return p, err
	}
	for i, id := range []string{"pol_1", "pol_2", "pol_3"} { // the last one lives
		p := newPool(id)
		p.Name = "lab"
		if i < 2 {
			p.DeletedAt = day.Add(time.Duration(i) * time.Hour)
		}
		_, err := lost("lab")
		require.Equal(w, i == 0, errors.Is(err, ledger.ErrNotFound))
		w.mustSave(ledger.Change{Pools: []ledger.Pool{p}})
	}
	found, err := lost("lab")
	require.NoError(w, err)
	require.Equal(w, "pol_2", found.ID, "the last one")
	_, err = lost("pol_1")
	require.ErrorIs(w, err, ledger.ErrNotFound)
}

func oneGPUHasOneHolder(w *world) {
	n := saveGround(w)
	first := activeAllocation(w, "alc_1", "org_1", n, day, 0, 1)
	second := activeAllocation(w, "alc_2", "org_2", n, day, 1, 2)
	w.mustSave(ledger.Change{Allocations: []allocation.Allocation{first}})
	require.ErrorIs(w, w.save(ledger.Change{Allocations: []allocation.Allocation{second}}), ledger.ErrTaken)
	first.Version = 1
	extended := first
	extended.LeaseUntil = extended.LeaseUntil.Add(time.Hour)
	w.mustSave(ledger.Change{Allocations: []allocation.Allocation{extended}}) // holding it still is no second hold
	first.Version = 2
	first = releasedAllocation(w, first, day.Add(time.Hour))
	w.mustSave(ledger.Change{Allocations: []allocation.Allocation{second, first}})
	ended := readValue(w, func(r ledger.Reader) (allocation.Allocation, error) {
		return r.Allocation(everything, "alc_1")
	})
	require.Equal(w, first.Devices, ended.Devices, "what it held is still known")
	of := readValue(w, func(r ledger.Reader) (map[string]string, error) {
		return r.Holders([]string{first.ID, "alc_none", second.ID})
	})
	require.Equal(w, map[string]string{first.ID: first.OrganizationID, second.ID: second.OrganizationID}, of)
	known := readValue(w, func(r ledger.Reader) ([]allocation.Allocation, error) {
		return r.AllocationsByID([]string{second.ID, "alc_none"})
	})
	second.Version, second.Devices = 1, nil
	require.Equal(w, []allocation.Allocation{second}, known, "without its devices")
	for nodeID, want := range map[string][]allocation.Allocation{n.ID: {second}, "nod_404": {}} {
		require.Equal(w, want, readValue(w, func(r ledger.Reader) ([]allocation.Allocation, error) {
			return r.AllocationsOn(nodeID)
		}), "what has its GPUs now")
	}
}

func aPoolsStateIsWhatIsLive(w *world) {
	n := saveGround(w)
	n.Version = 1
	held := activeAllocation(w, "alc_1", "org_1", n, day, 2, 0)
	waiting := pendingAllocation("alc_2", "org_2", "pol_1", day)
	ended := releasedAllocation(w, activeAllocation(w, "alc_3", "org_1", n, day, 3), day.Add(time.Hour))
	promise := bookedReservation(w, "rsv_1", "org_1", "pol_1", day)
	w.mustSave(ledger.Change{
		Nodes: []node.Node{fullNode(w, "nod_2", "pol_1", 3), readyNode(w, "nod_3", "pol_2", 0, day)},
		Reservations: []reservation.Reservation{promise, fullReservation(w, "rsv_2", "org_1", "pol_1"),
			bookedReservation(w, "rsv_3", "org_1", "pol_2", day)},
		Allocations: []allocation.Allocation{held, waiting, ended, pendingAllocation("alc_4", "org_1", "pol_2", day)},
	})
	p := newPool("pol_1")
	p.Version, held.Version, waiting.Version, promise.Version = 1, 1, 1, 1
	want := ledger.PoolState{
		Pool: p, Nodes: []node.Node{n}, Reservations: []reservation.Reservation{promise},
		Allocations: []allocation.Allocation{held, waiting},
	}
	live := func(r ledger.Reader) (ledger.PoolState, error) {
		state, err := r.PoolState("pol_1")
		state.Spent = nil // see spentIsTheSum
		return state, err
	}
	require.Equal(w, want, readValue(w, live))
	require.NoError(w, w.inTx(func(tx ledger.Tx) error {
		_, err := tx.Lock(ledger.LockRequest{Pools: []string{"pol_1"}})
		require.NoError(w, err)
		seen, err := live(tx)
		require.NoError(w, err)
		require.Equal(w, want, seen)
		return nil
	}))
}

// oneWorkerHoldsAProvisioner until its hold is over. Reports about the provisioner
// leave the hold alone.
func oneWorkerHoldsAProvisioner(w *world) {
	hold := func(holder string, lasts time.Duration) ledger.ProvisionerHold {
		var now ledger.ProvisionerHold
		require.NoError(w, w.inTx(func(tx ledger.Tx) (err error) {
			now, err = tx.HoldProvisioner(ledger.ProvisionerHold{Name: "sim", Holder: holder, Host: "host of " + holder,
				Until: tx.Now().Add(lasts)})
			return err
		}))
		return now
	}
	require.Equal(w, "one", hold("one", time.Hour).Holder)
	other := hold("two", time.Hour)
	require.Equal(w, "one", other.Holder)
	require.Equal(w, "host of one", other.Host)
	w.mustSave(ledger.Change{Provisioners: []ledger.Provisioner{{Name: "sim", ReportedAt: day}}})
	require.Equal(w, "one", hold("two", time.Hour).Holder, "a report changes nothing")
	longer := hold("one", 2*time.Hour)
	require.True(w, longer.Until.After(other.Until), "it prolongs its own")
	require.Equal(w, "one", hold("one", -time.Second).Holder)
	require.Equal(w, "two", hold("two", time.Hour).Holder, "it was over")
	require.Equal(w, "two", hold("one", time.Hour).Holder)
	reported := readValue(w, func(r ledger.Reader) ([]ledger.Provisioner, error) { return r.Provisioners() })
	require.Equal(w, []ledger.Provisioner{{Name: "sim", ReportedAt: day}}, reported,
		"a hold changes nothing that was reported")
}
