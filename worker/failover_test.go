package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/money"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/provisioners"
	"github.com/forewarm/forewarm/provisioners/sim"
)

// twoSources is a world whose first source has no machines.
func twoSources(t *testing.T) *world {
	t.Helper()
	s := usualSite()
	s.spare = true
	w := buildWorld(t, s)
	w.startWorker(parts{})
	w.injectFault(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindCapacity, Times: 1000})
	return w
}

// requireShares checks the costs of each source apart.
func (w *world) requireShares() {
	w.t.Helper()
	shares := map[string]money.MicroUSD{}
	for _, line := range w.readCosts().Lines {
		shares[line.Provisioner] += line.Amount
	}
	for _, c := range w.allClouds() {
		require.Equal(w.t, c.Bill(w.clock.Now()).Total.Cost.Decimal(), shares[c.Name()].Decimal(), c.Name())
	}
}

func (w *world) nodeProvisioners() []string {
	var all []string
	for _, n := range w.readNodes() {
		all = append(all, n.Offering.Provisioner)
	}
	return all
}

// What the first source has not is asked of the second in the same moment, and
// costs what it costs there. When the first has some again, it is asked again.
func TestAStockOutMovesToTheNextSourceAndBack(t *testing.T) {
	t.Parallel()
	w := twoSources(t)
	a := w.allocateNode()
	w.driveFor(0)
	require.Equal(t, []node.State{node.Failed, node.Booting}, w.nodeStates())
	require.Equal(t, []string{"sim", "spare"}, w.nodeProvisioners())
	w.driveFor(5 * time.Minute)
	w.requireActive(a)
	w.requireShares()
	require.Zero(t, w.cloud.Bill(w.clock.Now()).Total.Cost)

	w.removeFaults()
	b := w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.requireActive(b)
	require.Equal(t, []string{"sim", "spare", "sim"}, w.nodeProvisioners())
	w.closeAndCheck()
	w.requireShares()
}

// What is said of a reservation follows the source that its node is asked of.
func TestAnExplanationIsOfTheSourceThatIsAsked(t *testing.T) {
	t.Parallel()
	w := twoSources(t)
	warm := func(r reservation.Reservation) string {
		explained, err := w.ledger.ExplainReservation(t.Context(), w.actor, r.ID)
		require.NoError(t, err)
		require.NotEmpty(t, explained.Next)
		return explained.Next[0].Message
	}
	r := w.reserveNode(time.Hour, time.Hour)
	require.Contains(t, warm(r), "up to 2m ")
	w.allocateNode()
	w.driveFor(0)
	require.Contains(t, warm(r), "up to 3m ")
	w.removeFaults()
	w.closeAndCheck()
}

// While no source has any, all are asked again, and whichever has some first
// gives the machine.
func TestWhereNoSourceHasAnyTheFirstThatHealsGivesIt(t *testing.T) {
	t.Parallel()
	w := twoSources(t)
	require.NoError(t,
		w.spare.Inject(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindQuota, Times: 1000}))
	a := w.allocateNode()
	w.driveFor(10 * time.Minute)
	require.Empty(t, w.countMachines())
	w.spare.ClearFaults(sim.OpCreate)
	w.driveFor(40 * time.Minute)
	w.requireActive(a)
	require.Equal(t, []string{"spare"}, w.nodeProvisioners()[len(w.nodeProvisioners())-1:])
	w.closeAndCheck()
}

// A machine stays the business of the source that made it, whatever becomes of
// its pool.
func TestAMachineIsLookedAfterWhereItWasMade(t *testing.T) {
	t.Parallel()
	w := twoSources(t)
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.requireActive(a)
	w.removeFaults()
	w.updatePool(func(p *capacity.Pool) { p.Alternates = nil })
	w.driveFor(10 * time.Minute)
	w.requireActive(a)
	require.NotContains(t, w.eventTypes(), "sweep.orphan_terminated")
	require.NoError(t, w.spare.Kill(w.readNodes()[1].ProviderID))
	w.driveFor(5 * time.Minute)
	require.Equal(t, node.Gone, w.nodeStates()[1], "its end was not noticed")
	b := w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.requireActive(b)
	require.Equal(t, []string{"sim", "spare", "sim"}, w.nodeProvisioners())
	w.closeAndCheck()
	w.requireShares()
}

// The same of a machine whose creation was never answered.
func TestAMachineIsAdoptedWhereItWasMade(t *testing.T) {
	t.Parallel()
	w := twoSources(t)
	require.NoError(t, w.spare.Inject(sim.Fault{Op: sim.OpCreate, Effect: sim.ExecuteAndTimeout, Times: 1}))
	require.NoError(t,
		w.spare.Inject(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindUnknown,
			Times: 1000}))
	w.allocateNode()
	w.driveFor(30 * time.Second)
	require.Equal(t, []node.State{node.Failed, node.Provisioning}, w.nodeStates())
	w.endEverything()
	w.updatePool(func(p *capacity.Pool) { p.Alternates = nil })
	w.retireNode(w.readNodes()[1])
	w.driveFor(5 * time.Minute)
	require.Equal(t, []node.State{node.Failed, node.Gone}, w.nodeStates())
	w.closeAndCheck()
	w.requireShares()
}
