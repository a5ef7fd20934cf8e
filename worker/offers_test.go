package worker_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/core/plan"
	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/provisioners"
)

// Once a worker has said what its provisioners offer, a pool of machines that
// none of them makes is refused, with what there is instead.
func TestAPoolIsHeldAgainstItsOffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	prior := learned.BootTimes{Prior50: time.Minute, Prior95: time.Minute}
	unknown := w.pool.Pool
	unknown.ID, unknown.Name, unknown.Provisioner = "", "early", "nobody"
	_, err := w.ledger.CreatePool(t.Context(), w.actor, unknown, prior)
	require.NoError(t, err, "no worker has said anything yet")
	w.startWorker(parts{})
	w.driveFor(time.Minute)

	for field, spoil := range map[string]func(*capacity.Pool){
		"provisioner":    func(p *capacity.Pool) { p.Provisioner = "nobody" },
		"instance_type":  func(p *capacity.Pool) { p.Type = "t4-8" },
		"gpus_per_node":  func(p *capacity.Pool) { p.PerNode = 4 },
		"model":          func(p *capacity.Pool) { p.Model = "h100-80g" },
		"gpu_memory_mib": func(p *capacity.Pool) { p.MemoryMiB = 100_000 },
		"alternates[0].provisioner": func(p *capacity.Pool) {
			p.Alternates = []capacity.Alternate{{Offering: capacity.Offering{Provisioner: "nobody", Region: "sim-1",
				Type: "a100-8"}}}
		},
	} {
		def := w.pool.Pool
		def.ID, def.Name = "", "other"
		spoil(&def)
		_, err := w.ledger.CreatePool(t.Context(), w.actor, def, prior)
		var invalid *ledger.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
		require.NotEmpty(t, invalid.Fix)
		now := readFrom(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("a100") })
		_, err = w.ledger.UpdatePool(t.Context(), w.actor, "a100", now.DefinitionVersion, spoil)
		require.ErrorAs(t, err, &invalid, "an edit, too: %s", field)
	}
	good := w.pool.Pool
	good.ID, good.Name, good.Model = "", "good", "A100-80G"
	_, err = w.ledger.CreatePool(t.Context(), w.actor, good, prior)
	require.NoError(t, err)
}

// A node of a provisioner that no worker has fails at once, and says why.
func TestANodeThatNobodyCanMake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	def := w.pool.Pool
	def.ID, def.Name, def.Provisioner = "", "early", "nobody"
	_, err := w.ledger.CreatePool(t.Context(), w.actor, def,
		learned.BootTimes{Prior50: time.Minute, Prior95: time.Minute})
	require.NoError(t, err)
	_, err = w.ledger.Allocate(t.Context(), w.actor, ledger.AllocateRequest{Pool: "early", GPUs: 8, Lease: time.Hour})
	require.NoError(t, err)
	w.startWorker(parts{})
	w.driveFor(time.Second)
	nodes := w.readNodes()
	require.Len(t, nodes, 1)
	require.Equal(t, node.Failed, nodes[0].State())
	require.Equal(t, "no_provisioner", nodes[0].Reason)
}

// Two machines in a row with a fault of their kind are enough: the third would
// have it, too. The pool says why, and an edit has it asked again.
func TestUnfitMachinesStopTheBuying(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wrong := illnesses["gpu_model"]
	sick := &ill{Provisioner: w.cloud, change: wrong}
	w.dress = func(provisioners.Provisioner) provisioners.Provisioner { return sick }
	registry := prometheus.NewRegistry()
	var err error
	w.counts, err = obs.NewMetrics(registry)
	require.NoError(t, err)
	w.startWorker(parts{})
	r := w.reserveNode(4*time.Minute, 12*time.Hour)
	w.driveFor(8 * time.Hour)
	require.Len(t, w.readNodes(), 2, "a third would cost as much")
	pool := readFrom(w, func(r ledger.Reader) (ledger.Pool, error) { return r.Pool("a100") })
	require.Equal(t, "gpu_model", pool.Stopped())
	require.Contains(t, w.eventTypes(), "pool.stopped")
	told, err := w.ledger.ExplainReservation(t.Context(), w.actor, r.ID)
	require.NoError(t, err)
	var codes []string
	for _, b := range told.Blockers {
		codes = append(codes, b.Code)
	}
	require.Contains(t, codes, plan.HeldUnfit)
	require.Nil(t, told.Wait, "nobody knows when a person comes")
	families, err := registry.Gather()
	require.NoError(t, err)
	var shown []string
	for _, f := range families {
		shown = append(shown, f.GetName())
	}
	require.Contains(t, shown, "forewarm_node_requests_withheld_total")

	sick.change = nil
	_, err = w.ledger.UpdatePool(t.Context(), w.actor, "a100", pool.DefinitionVersion, func(*capacity.Pool) {})
	require.NoError(t, err)
	w.driveFor(3 * time.Minute)
	require.Len(t, w.readNodes(), 3)
	require.Equal(t, node.Ready, w.readNodes()[2].State())
}
