package ledgermetrics_test

import (
	"strings"
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

// newLab is a world with a pool lab, whose node nod_1 is ready, and what changes its ledger.
func newLab(t *testing.T) (*world, func(ledger.Change)) {
	t.Helper()
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
	return w, save
}

// What daemons say of GPUs shows while they report, and a figure that is not there has no
// series.
func TestGPUsShowWhatTheirDaemonsSay(t *testing.T) {
	t.Parallel()
	w, save := newLab(t)
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

// look is what a daemon says of two GPUs, of which the second tells little.
const look = `{"gpus":[{"uuid":"GPU-1","index":0,"health":"healthy","sm_clock_mhz":1410,"memory_clock_mhz":1593,
	"throttle":["power_cap","gremlins","goblins"],"ecc_uncorrected_volatile":1,"ecc_uncorrected_aggregate":2,
	"ecc_corrected_volatile":3,"ecc_corrected_aggregate":4,"remapped_rows":5,"xid_count":6,"last_xid":79,
	"nvlink_errors":7,"nvlinks_up":18,"nvlink_sent_bytes_per_second":1000,"nvlink_received_bytes_per_second":2000,
	"pcie_generation":5,"pcie_width":16,"pcie_sent_bytes_per_second":3000,
	"pcie_received_bytes_per_second":4000,"sm_activity_percent":12.5},
	{"uuid":"GPU-2","index":1,"health":"healthy","ecc_uncorrected_volatile":0}]}`

// Each figure that a daemon tells has its series, in base units; the words of a daemon make no labels, and what a GPU
// does not tell is not 0.
func TestEachFigureOfAGPUHasASeries(t *testing.T) {
	t.Parallel()
	w, save := newLab(t)
	save(ledger.Change{Presences: []ledger.Presence{{NodeID: "nod_1", SeenAt: begin, Look: []byte(look)}}})
	tells := readGPUs(t, w)
	const one, two = " 0 nod_1 lab GPU-1", " 1 nod_1 lab GPU-2"
	require.Equal(t, map[string]float64{
		"clock_hertz sm" + one: 1.41e9, "clock_hertz memory" + one: 1.593e9,
		"throttled 0 nod_1 lab power_cap GPU-1": 1, "throttled 0 nod_1 lab other GPU-1": 1,
		"ecc_errors_total volatile uncorrected" + one: 1, "ecc_errors_total aggregate uncorrected" + one: 2,
		"ecc_errors_total volatile corrected" + one: 3, "ecc_errors_total aggregate corrected" + one: 4,
		"remapped_rows" + one: 5, "xids_total" + one: 6, "last_xid" + one: 79, "nvlink_errors_total" + one: 7,
		"nvlinks_up" + one: 18, "nvlink_bytes_per_second sent" + one: 1000, "nvlink_bytes_per_second received" + one: 2000,
		"pcie_generation" + one: 5, "pcie_width_lanes" + one: 16, "pcie_bytes_per_second sent" + one: 3000,
		"pcie_bytes_per_second received" + one: 4000, "sm_activity_ratio" + one: 0.125,
		"unhealthy" + one: 0, "unhealthy" + two: 0, "ecc_errors_total volatile uncorrected" + two: 0,
	}, tells)
}

// readGPUs reads the series of GPUs, without what their names have in common.
func readGPUs(t *testing.T, w *world) map[string]float64 {
	t.Helper()
	tells := map[string]float64{}
	for name, value := range readLevels(t, ledgermetrics.NewCollector(w.store, w.clock)) {
		if short, of := strings.CutPrefix(name, "forewarm_gpu_"); of {
			tells[short] = value
		}
	}
	return tells
}

// divided is what a daemon says of a GPU that MIG divides in two, beside one that it does not.
const divided = `{"gpus":[
	{"uuid":"MIG-1","parent":"GPU-1","index":0,"health":"healthy","temperature_celsius":40,"memory_used_mib":1,
	"ecc_uncorrected_volatile":1,"remapped_rows":5,"xid_count":6,"last_xid":79,"nvlink_errors":7,"nvlinks_up":18,
	"pcie_width":16},
	{"uuid":"MIG-2","parent":"GPU-1","index":1,"health":"unhealthy","temperature_celsius":40,"memory_used_mib":2,
	"ecc_uncorrected_volatile":1,"remapped_rows":5,"xid_count":6,"last_xid":79,"nvlink_errors":7,"nvlinks_up":18,
	"pcie_width":16},
	{"uuid":"MIG-3","parent":"GPU-2","index":2,"health":"healthy","xid_count":1},
	{"uuid":"GPU-2","index":3,"health":"healthy","xid_count":2}]}`

// What counts for a whole GPU is told once, and not by each of its MIG devices, so that sums are right. No name that a
// daemon gives makes a series twice.
func TestWhatAWholeGPUCountsIsToldOnce(t *testing.T) {
	t.Parallel()
	w, save := newLab(t)
	save(ledger.Change{Presences: []ledger.Presence{{NodeID: "nod_1", SeenAt: begin, Look: []byte(divided)}}})
	const one, two, whole = " 0 nod_1 lab MIG-1", " 1 nod_1 lab MIG-2", "  nod_1 lab GPU-1"
	require.Equal(t, map[string]float64{
		"temperature_celsius" + one: 40, "temperature_celsius" + two: 40, "memory_used_bytes" + one: 1 << 20,
		"memory_used_bytes" + two: 2 << 20, "unhealthy" + one: 0, "unhealthy" + two: 1,
		"ecc_errors_total volatile uncorrected" + whole: 1, "remapped_rows" + whole: 5, "xids_total" + whole: 6,
		"last_xid" + whole: 79, "nvlink_errors_total" + whole: 7, "nvlinks_up" + whole: 18, "pcie_width_lanes" + whole: 16,
		"unhealthy 2 nod_1 lab MIG-3": 0, "xids_total  nod_1 lab GPU-2": 1, "unhealthy 3 nod_1 lab GPU-2": 0,
		"xids_total 3 nod_1 lab GPU-2": 2,
	}, readGPUs(t, w))
}
