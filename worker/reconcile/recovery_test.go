package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/ledger"
)

func (s *site) readRecovery() ledger.Recovery {
	s.t.Helper()
	var p ledger.Pool
	require.NoError(s.t, s.store.Read(s.t.Context(), func(r ledger.Reader) (err error) {
		p, err = r.Pool(s.pool.ID)
		return err
	}))
	return p.Recovery
}

// A machine whose node this database never had: it is a restored backup, or
// somebody else has our name. Nothing is ended until a person has looked.
func TestAnUnknownNodeStopsEverythingUntilAPersonHasLooked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	unknown := s.createInstance("ours", "nod_unknown", "t1")
	stray := s.createInstance("ours", s.createOverNode(), "t2")
	s.sweepFor(time.Hour)
	require.True(t, s.readRecovery().Active())
	require.Contains(t, s.readRecovery().Reason, unknown.ID)
	require.True(t, s.isLive(unknown))
	require.True(t, s.isLive(stray), "what is known to be an orphan waits too")

	changed, err := s.ledger.EndRecovery(t.Context(), ledger.SystemActor("test"))
	require.NoError(t, err)
	require.Equal(t, 1, changed)
	s.sweepFor(time.Minute)
	require.False(t, s.readRecovery().Active(), "what a person has looked at is looked at once")
	require.False(t, s.isLive(unknown))
	require.False(t, s.isLive(stray))
}

// Whoever shares the account has another name, and whoever is gone already
// cannot be ended wrongly.
func TestForeignAndEndedMachinesAreNoReasonToStop(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createInstance("theirs", "nod_unknown", "t1")
	ended := s.createInstance("ours", "nod_unknown", "t2")
	require.NoError(t, s.cloud.Delete(t.Context(), ended.ID))
	s.sweepFor(time.Hour)
	require.False(t, s.readRecovery().Active())
}

// What no node stands for is on an account of its own, from birth to end.
func TestOrphansAreCharged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createInstance("ours", s.createOverNode(), "t1")
	second := s.createNode(0, "sim-another", upAndRunning...)
	s.createInstance("ours", second.ID, "t2")
	died := s.createInstance("ours", s.createNode(1, "", node.Provision, node.Refuse).ID, "t3")
	require.NoError(t, s.cloud.Kill(died.ID))
	s.sweepFor(30 * time.Minute)
	bill := s.cloud.Bill(s.clock.Now())
	require.Equal(t, 3, bill.Total.Machines)
	var costs ledger.Costs
	var standing []ledger.Orphan
	require.NoError(t, s.store.Read(t.Context(), func(r ledger.Reader) (err error) {
		if standing, err = r.Orphans(ledger.OrphanFilter{Billed: true}); err != nil {
			return err
		}
		costs, err = r.Costs(ledger.Scope{All: true}, start, s.clock.Now())
		return err
	}))
	require.Empty(t, standing)
	require.Equal(t, bill.Total.Cost, costs.Total())
	require.Len(t, costs.Lines, 1)
	require.Equal(t, 3, costs.Lines[0].Machines)
}
