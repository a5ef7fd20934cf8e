package worker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/reservation"
	"github.com/forewarm/forewarm/provisioners"
)

// spotSite is a cloud that announces five minutes ahead what it takes back.
func spotSite() site {
	s := usualSite()
	s.ledger.VerifyEvery = time.Minute
	s.cloud.Offers[0].Notice = 5 * time.Minute
	return s
}

// Whoever works on a machine that is taken back is told until when, gets to work
// until then, and pays until then.
func TestAnInterruptionIsAnnouncedToWhoWorksThere(t *testing.T) {
	t.Parallel()
	w := buildWorld(t, spotSite())
	w.startWorker(parts{})
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	w.requireActive(a)
	require.NoError(t, w.cloud.Reclaim(w.readNodes()[0].ProviderID))
	ends := w.clock.Now().Add(5 * time.Minute)
	w.driveFor(2 * time.Minute)

	require.Equal(t, []node.State{node.Draining}, w.nodeStates())
	require.Equal(t, "interruption", w.readNodes()[0].Reason)
	warned := w.readEvents("allocation.warned")
	require.Len(t, warned, 1)
	require.Equal(t, a.ID, warned[0].Subject)
	require.Equal(t, w.actor.OrganizationID, warned[0].OrganizationID)
	require.Equal(t, "interruption", warned[0].Reason)
	require.Contains(t, warned[0].Message, ends.Format("15:04:05"))
	w.requireActive(a)

	b := w.allocateNode() // nothing new comes onto it
	w.driveFor(2 * time.Minute)
	w.requireActive(a)
	w.requireActive(b)
	require.NotEqual(t, w.readAllocation(a.ID).Slots, w.readAllocation(b.ID).Slots)
	w.driveFor(3 * time.Minute)
	require.Equal(t, allocation.Failed, w.readAllocation(a.ID).State())
	require.Len(t, w.readEvents("allocation.warned"), 1, "told twice")
	w.closeAndCheck()
	w.requireOver(2)
}

// A promise that is warm on such a machine moves to another in time.
func TestAnInterruptedPromiseIsWarmElsewhere(t *testing.T) {
	t.Parallel()
	w := buildWorld(t, spotSite())
	w.updatePool(func(p *capacity.Pool) { p.MinNodes = 2 })
	w.startWorker(parts{})
	w.driveFor(5 * time.Minute)
	r := w.reserveNode(6*time.Minute, 30*time.Minute)
	w.driveFor(4 * time.Minute)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State())
	before := w.readReservation(r.ID).Slots
	for _, n := range w.readNodes() {
		if slices.Contains(before, n.Slot) {
			require.NoError(t, w.cloud.Reclaim(n.ProviderID))
		}
	}
	w.driveFor(2 * time.Minute)
	require.Equal(t, reservation.Ready, w.readReservation(r.ID).State(), "not warm at its start")
	require.NotEqual(t, before, w.readReservation(r.ID).Slots)
	a, err := w.ledger.Claim(t.Context(), w.actor, r.ID, 20*time.Minute, "")
	require.NoError(t, err)
	w.driveFor(10 * time.Minute)
	w.requireActive(a)
	w.updatePool(func(p *capacity.Pool) { p.MinNodes = 0 })
	w.closeAndCheck()
}

// announcing is a provider that says something of its machines.
type announcing struct {
	provisioners.Provisioner
	notice map[string]*provisioners.Notice // by machine
	all    *provisioners.Notice            // of every other
}

func (p *announcing) Get(ctx context.Context, id string) (provisioners.Instance, error) {
	i, err := p.Provisioner.Get(ctx, id)
	if i.Phase == provisioners.Running {
		i.Notice = p.all
		if n, said := p.notice[id]; said {
			i.Notice = n
		}
	}
	return i, err
}

var failing = &provisioners.Notice{Kind: provisioners.NoticeDegraded, Message: "host maintenance"}

// A machine that is failing gets no new work, and goes when what runs on it is done.
func TestADegradedMachineIsDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cloud := &announcing{Provisioner: w.cloud, notice: map[string]*provisioners.Notice{}}
	w.startWorker(parts{cloud: cloud})
	a := w.allocateNode()
	w.driveFor(5 * time.Minute)
	cloud.notice[w.readNodes()[0].ProviderID] = failing
	w.driveFor(10 * time.Minute)
	require.Equal(t, []node.State{node.Draining}, w.nodeStates())
	require.Equal(t, "degraded", w.readEvents("allocation.warned")[0].Reason)
	w.requireActive(a)
	w.endEverything()
	w.driveFor(5 * time.Minute)
	w.requireOver(1)
}

// A machine that is failing before it was ever used is given up and replaced.
func TestAMachineThatIsFailingFromTheStartIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cloud := &announcing{Provisioner: w.cloud, all: failing}
	w.startWorker(parts{cloud: cloud})
	a := w.allocateNode()
	w.driveFor(3 * time.Minute)
	require.Equal(t, "degraded", w.readNodes()[0].Reason)
	require.NotContains(t, w.eventTypes(), "node.ready")
	cloud.all = nil
	w.driveFor(10 * time.Minute)
	w.requireActive(a)
	require.Equal(t, []node.State{node.Gone, node.Ready}, w.nodeStates())
	w.closeAndCheck()
	w.requireOver(2)
}
