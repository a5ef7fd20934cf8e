package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners/sim"
)

// A list may be older than the one before. What it lacks for that is charged again
// when it is back.
func TestAnOrphanThatAnOldListLacksIsChargedToItsEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	i := s.createInstance("ours", "nod_unknown", "t")
	s.sweepFor(time.Minute)
	s.cloud.SetListLag(5 * time.Minute)
	s.sweepFor(time.Minute)
	require.NotZero(t, s.readOrphan().BilledUntil)
	s.cloud.SetListLag(0)
	s.sweepFor(time.Minute)
	require.Zero(t, s.readOrphan().BilledUntil, "it stands")
	s.cloud.SetListLag(5 * time.Minute)
	s.sweepFor(time.Minute)
	require.NoError(t, s.cloud.Kill(i.ID))
	ended := s.clock.Now()
	s.cloud.SetListLag(0)
	s.sweepFor(time.Minute)
	require.Equal(t, ended, s.readOrphan().BilledUntil)
}

// What a machine costs depends on where it was asked for.
func TestAnOrphanIsChargedAtThePriceOfItsRegion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	near := sim.Config{}.WithDefaults().Offers[0]
	far := near
	far.Region, far.Price = "far-1", 2*near.Price
	var err error
	s.cloud, err = sim.New(sim.Config{Name: "sim", Offers: []sim.Offer{far, near}}, s.clock)
	require.NoError(t, err)
	n := s.createNode(0, "", node.Provision, node.Refuse)
	s.createInstance("ours", n.ID, "t")
	s.sweepFor(time.Minute)
	require.Equal(t, s.pool.Offering(), s.readOrphan().Source)
	require.Equal(t, near.GPUs, s.readOrphan().GPUs)
}

// readOrphan is the only one that is written down.
func (s *site) readOrphan() ledger.Orphan {
	s.t.Helper()
	var all []ledger.Orphan
	require.NoError(s.t, s.store.Read(s.t.Context(), func(r ledger.Reader) (err error) {
		all, err = r.Orphans(ledger.OrphanFilter{})
		return err
	}))
	require.Len(s.t, all, 1)
	return all[0]
}
