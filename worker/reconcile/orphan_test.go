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
	i := s.machine("ours", "nod_unknown", "t")
	s.sweeps(time.Minute)
	s.cloud.SetListLag(5 * time.Minute)
	s.sweeps(time.Minute)
	require.NotZero(t, s.orphan().BilledUntil)
	s.cloud.SetListLag(0)
	s.sweeps(time.Minute)
	require.Zero(t, s.orphan().BilledUntil, "it stands")
	s.cloud.SetListLag(5 * time.Minute)
	s.sweeps(time.Minute)
	require.NoError(t, s.cloud.Kill(i.ID))
	ended := s.clock.Now()
	s.cloud.SetListLag(0)
	s.sweeps(time.Minute)
	require.Equal(t, ended, s.orphan().BilledUntil)
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
	n := s.node(0, "", node.Provision, node.Refuse)
	s.machine("ours", n.ID, "t")
	s.sweeps(time.Minute)
	require.Equal(t, s.pool.Offering(), s.orphan().Source)
	require.Equal(t, near.GPUs, s.orphan().GPUs)
}

// orphan is the only one that is written down.
func (s *site) orphan() ledger.Orphan {
	s.t.Helper()
	var all []ledger.Orphan
	require.NoError(s.t, s.store.Read(s.t.Context(), func(r ledger.Reader) (err error) {
		all, err = r.Orphans(ledger.OrphanFilter{})
		return err
	}))
	require.Len(s.t, all, 1)
	return all[0]
}
