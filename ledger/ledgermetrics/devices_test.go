package ledgermetrics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/core/capacity"
	"github.com/forewarm/forewarm/core/learned"
	"github.com/forewarm/forewarm/core/node"
	"github.com/forewarm/forewarm/internal/ids"
	"github.com/forewarm/forewarm/ledger"
	"github.com/forewarm/forewarm/ledger/ledgermetrics"
	"github.com/forewarm/forewarm/ledger/verbs"
)

// What daemons say of GPUs shows while they report, and a figure that is not there has no
// series.
func TestGPUsShowWhatTheirDaemonsSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := verbs.New(w.store, &ids.Sequence{}, ledger.Config{}).CreatePool(t.Context(), ledger.SystemActor("test"),
		capacity.Pool{Name: "lab", Provisioner: "sim", Type: "m", Model: "a100", PerNode: 4, MaxNodes: 2,
			Timers: capacity.Timers{MaxLease: time.Hour}}, learned.BootTimes{Prior50: time.Minute, Prior95: time.Minute})
	require.NoError(t, err)
	save := func(c ledger.Change) {
		require.NoError(t, w.inner.InTx(t.Context(), func(tx ledger.Tx) error { return tx.Save(c) }))
	}
	n := node.New("nod_1", p.ID, 0, 1, begin)
	for _, e := range []node.Event{node.Provision, node.Boot, node.BecomeReady} {
		n, err = n.Apply(e, "", begin)
		require.NoError(t, err)
	}
	save(ledger.Change{Nodes: []node.Node{n}})
	collector := ledgermetrics.NewCollector(w.store, w.clock)
	require.InDelta(t, 1, readLevels(t, collector)["forewarm_node_daemons lab none"], 0)
	save(ledger.Change{Presences: []ledger.Presence{{NodeID: "nod_1", SeenAt: begin, Look: []byte(`{"gpus":[
		{"uuid":"GPU-1","index":0,"health":"healthy","utilization_percent":37,"memory_used_mib":2,
		"temperature_celsius":45,"power_watts":123.5},
		{"uuid":"GPU-2","index":1,"health":"unhealthy"}]}`)}}})
	w.clock.Advance(time.Minute)
	got := readLevels(t, collector)
	for name, want := range map[string]float64{
		"forewarm_node_daemons lab online": 1, "forewarm_node_daemons lab none": 0, "forewarm_node_daemons lab silent": 0,
		"forewarm_gpu_utilization_ratio 0 nod_1 lab GPU-1": 0.37, "forewarm_gpu_memory_used_bytes 0 nod_1 lab GPU-1": 2 << 20,
		"forewarm_gpu_temperature_celsius 0 nod_1 lab GPU-1": 45, "forewarm_gpu_power_watts 0 nod_1 lab GPU-1": 123.5,
		"forewarm_gpu_unhealthy 0 nod_1 lab GPU-1": 0, "forewarm_gpu_unhealthy 1 nod_1 lab GPU-2": 1,
	} {
		require.Contains(t, got, name, got)
		require.InDelta(t, want, got[name], 1e-9, name)
	}
	require.NotContains(t, got, "forewarm_gpu_power_watts 1 nod_1 lab GPU-2")
	w.clock.Advance(2 * time.Minute)
	got = readLevels(t, collector)
	require.InDelta(t, 1, got["forewarm_node_daemons lab silent"], 0)
	require.NotContains(t, got, "forewarm_gpu_unhealthy 1 nod_1 lab GPU-2")
}
