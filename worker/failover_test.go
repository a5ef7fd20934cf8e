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
	s := usual()
	s.spare = true
	w := build(t, s)
	w.start(parts{})
	w.inject(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindCapacity, Times: 1000})
	return w
}

// requireShares checks the costs of each source apart.
func (w *world) requireShares() {
	w.t.Helper()
	shares := map[string]money.MicroUSD{}
	for _, line := range w.costs().Lines {
		shares[line.Provisioner] += line.Amount
	}
	for _, c := range w.clouds() {
		require.Equal(w.t, c.Bill(w.clock.Now()).Total.Cost.Decimal(), shares[c.Name()].Decimal(), c.Name())
	}
}

func (w *world) sources() []string {
	var all []string
	for _, n := range w.nodes() {
		all = append(all, n.Offering.Provisioner)
	}
	return all
}

// What the first source has not is asked of the second in the same moment, and
// costs what it costs there. When the first has some again, it is asked again.
func TestAStockOutMovesToTheNextSourceAndBack(t *testing.T) {
	t.Parallel()
	w := twoSources(t)
	a := w.ask()
	w.drive(0)
	require.Equal(t, []node.State{node.Failed, node.Booting}, w.states())
	require.Equal(t, []string{"sim", "spare"}, w.sources())
	w.drive(5 * time.Minute)
	w.requireActive(a)
	w.requireShares()
	require.Zero(t, w.cloud.Bill(w.clock.Now()).Total.Cost)

	w.mend()
	b := w.ask()
	w.drive(5 * time.Minute)
	w.requireActive(b)
	require.Equal(t, []string{"sim", "spare", "sim"}, w.sources())
	w.close()
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
	r := w.reserve(time.Hour, time.Hour)
	require.Contains(t, warm(r), "up to 2m ")
	w.ask()
	w.drive(0)
	require.Contains(t, warm(r), "up to 3m ")
	w.mend()
	w.close()
}

// While no source has any, all are asked again, and whichever has some first
// gives the machine.
func TestWhereNoSourceHasAnyTheFirstThatHealsGivesIt(t *testing.T) {
	t.Parallel()
	w := twoSources(t)
	require.NoError(t,
		w.spare.Inject(sim.Fault{Op: sim.OpCreate, Effect: sim.FailBefore, Kind: provisioners.KindQuota, Times: 1000}))
	a := w.ask()
	w.drive(10 * time.Minute)
	require.Empty(t, w.live())
	w.spare.Mend(sim.OpCreate)
	w.drive(40 * time.Minute)
	w.requireActive(a)
	require.Equal(t, []string{"spare"}, w.sources()[len(w.sources())-1:])
	w.close()
}

// A machine stays the business of the source that made it, whatever becomes of
// its pool.
func TestAMachineIsLookedAfterWhereItWasMade(t *testing.T) {
	t.Parallel()
	w := twoSources(t)
	a := w.ask()
	w.drive(5 * time.Minute)
	w.requireActive(a)
	w.mend()
	w.updatePool(func(p *capacity.Pool) { p.Alternates = nil })
	w.drive(10 * time.Minute)
	w.requireActive(a)
	require.NotContains(t, w.history(), "sweep.orphan_terminated")
	require.NoError(t, w.spare.Kill(w.nodes()[1].ProviderID))
	w.drive(5 * time.Minute)
	require.Equal(t, node.Gone, w.states()[1], "its end was not noticed")
	b := w.ask()
	w.drive(5 * time.Minute)
	w.requireActive(b)
	require.Equal(t, []string{"sim", "spare", "sim"}, w.sources())
	w.close()
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
	w.ask()
	w.drive(30 * time.Second)
	require.Equal(t, []node.State{node.Failed, node.Provisioning}, w.states())
	w.leave()
	w.updatePool(func(p *capacity.Pool) { p.Alternates = nil })
	w.retire(w.nodes()[1])
	w.drive(5 * time.Minute)
	require.Equal(t, []node.State{node.Failed, node.Gone}, w.states())
	w.close()
	w.requireShares()
}
