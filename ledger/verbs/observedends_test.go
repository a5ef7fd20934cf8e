package verbs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/allocation"
	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/quota"
	"github.com/forewarm/forewarm/ledger"
)

// requireEnded checks that work counts as ended, and why.
func (w *cluster) requireEnded(id, reason string) {
	w.Helper()
	a := w.workOf(id)
	require.Equal(w, allocation.Released, a.State())
	require.Equal(w, reason, a.Reason)
	require.False(w, a.EndedAt.IsZero())
}

// A pool is deleted although the cluster's work runs in it: that goes on, and is not ours.
func TestAPoolWithRunningWorkCanBeDeleted(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	r := w.warm(w.ann, 2)
	w.begin("17", "vision", 0, 2, w.nodeOf(r, 0))
	w.begin("18", "vision", 0, 2, "")
	w.observe()
	var inUse *ledger.InUseError
	require.ErrorAs(t, w.ledger.DeletePool(t.Context(), operator, "lab"), &inUse)
	require.Len(t, inUse.In, 1)
	require.Equal(t, "nodes", inUse.In[0].Noun)
	_, err := w.ledger.DrainNode(t.Context(), operator, w.readNodes(node.Ready)[0].ID, "")
	require.NoError(t, err)
	w.pass(time.Minute)
	require.NoError(t, w.ledger.DeletePool(t.Context(), operator, "lab"))
	w.requireEnded("17", "pool_deleted")
	w.requireEnded("18", "pool_deleted")
	require.Zero(t, w.observe())
}

// A pool that is made again after it was deleted, as a configuration does it, does not list
// what still runs there a second time; new work it lists.
func TestAPoolThatIsMadeAgainListsWorkOnce(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.begin("17", "vision", 0, 2, "")
	w.observe()
	again := w.pool.Pool
	require.NoError(t, w.ledger.DeletePool(t.Context(), operator, "lab"))
	w.requireEnded("17", "pool_deleted")
	again.ID = ""
	made, err := w.ledger.CreatePool(t.Context(), operator, again, learned.BootTimes{Prior50: boot, Prior95: boot})
	require.NoError(t, err)
	require.NotEqual(t, w.pool.ID, made.ID)
	w.observe()
	w.requireEnded("17", "pool_deleted") // which is the only one
	w.begin("18", "vision", 0, 2, "")
	w.observe()
	require.Equal(t, made.ID, w.workOf("18").PoolID)
}

// Work ends with what watched it.
func TestWorkEndsWhenItsPoolIsOfOtherNodes(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*capacity.Pool){
		func(p *capacity.Pool) { p.Provisioner = "elsewhere" },
		func(p *capacity.Pool) { p.Type = "gpu-2-new" },
		func(p *capacity.Pool) { p.Observed, p.Holders = false, capacity.Holders{} },
	} {
		w := newCluster(t)
		w.begin("17", "vision", 0, 2, "")
		w.observe()
		_, err := w.ledger.UpdatePool(t.Context(), operator, "lab", w.pool.DefinitionVersion, change)
		require.NoError(t, err)
		w.requireEnded("17", "pool_changed")
	}
}

func TestWorkThatNobodyWatchesEnds(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.begin("17", "vision", 0, 2, "")
	w.observe()
	require.NoError(t, w.ledger.ReportBlind(t.Context(), "sim"))
	blind := w.clock.Now()
	w.clock.Advance(time.Hour)
	require.NoError(t, w.ledger.ReportBlind(t.Context(), "sim"))
	ended, err := w.ledger.EndUnwatched(t.Context(), "sim")
	require.NoError(t, err)
	require.Equal(t, 1, ended)
	w.requireEnded("17", "unwatched")
	require.Equal(t, blind, w.workOf("17").EndedAt.UTC(), "nobody has seen it since")
	ended, err = w.ledger.EndUnwatched(t.Context(), "sim")
	require.NoError(t, err)
	require.Zero(t, ended)
}

// What the cluster runs for an organization keeps nobody from deleting it; a rule that
// names it does, until it names another.
func TestAHolderIsDeletedWhenNoRuleNamesIt(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	w.begin("17", "vision", 0, 2, "")
	w.begin("18", "physics", 0, 2, "")
	w.observe()
	var inUse *ledger.InUseError
	_, err := w.ledger.DeleteOrganization(t.Context(), operator, w.ann.OrganizationID)
	require.ErrorAs(t, err, &inUse)
	require.Equal(t, []ledger.Use{{Noun: "holders", Count: 1, IDs: []string{"rule 1 of lab"}}}, inUse.In)
	_, err = w.ledger.DeleteOrganization(t.Context(), operator, w.bob.OrganizationID)
	require.ErrorAs(t, err, &inUse)
	require.Equal(t, []string{"all other work of lab"}, inUse.In[0].IDs)

	p, err := w.ledger.UpdatePool(t.Context(), operator, "lab", w.pool.DefinitionVersion,
		func(p *capacity.Pool) { p.Holders.Rules = nil })
	require.NoError(t, err)
	_, err = w.ledger.DeleteOrganization(t.Context(), operator, w.ann.OrganizationID)
	require.NoError(t, err, "its work runs, and nobody holds anything")
	w.end("17")
	require.Equal(t, ledger.Observed{Ended: 1}, w.observe())
	_, err = w.ledger.UpdatePool(t.Context(), operator, "lab", p.DefinitionVersion,
		func(p *capacity.Pool) { p.MaxNodes++ })
	require.NoError(t, err)
}

// Leases still keep an organization, behind any amount of observed work.
func TestLeasesKeepAnOrganization(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	eve := w.newLimitedPerson("eve", quota.Limits{GPUs: 8})
	w.mustAllocate(eve, 1)
	var inUse *ledger.InUseError
	_, err := w.ledger.DeleteOrganization(t.Context(), operator, eve.OrganizationID)
	require.ErrorAs(t, err, &inUse)
	require.Equal(t, "allocations", inUse.In[0].Noun)
}
