package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/ledger/ledgermetrics"
)

// gpuSums are the sums of all series of each metric of GPUs.
func (f *fleet) gpuSums(c prometheus.Collector) map[string]float64 {
	f.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(f.t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(f.t, err)
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if name := family.GetName(); strings.HasPrefix(name, "forewarm_gpu_") {
				all[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return all
}

// telling is telemetry of which each figure is n or grows with it.
func telling(n int) contract.GPUTelemetry {
	big, small, ratio := int64(n), n, float64(n)
	return contract.GPUTelemetry{Utilization: &small, SMActivity: &ratio, MemoryUsedMiB: &small, Temperature: &small,
		Power: &ratio, SMClock: &small, MemoryClock: &small, Throttle: []string{"power_cap", "sync_boost"}[:n],
		ECCVolatile: &big, ECCAggregate: &big, ECCCorrectedVolatile: &big, ECCCorrectedAggregate: &big, Remapped: &small,
		XIDCount: &big, LastXID: &small, NVLinkErrors: &big, NVLinksUp: &small, NVLinkSent: &big, NVLinkReceived: &big,
		PCIeGeneration: &small, PCIeWidth: &small, PCIeSent: &big, PCIeReceived: &big}
}

// Each metric of a GPU moves with what its daemon reports.
func TestEachMetricOfAGPUMoves(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.join(0, "boot", "daemon")
	collector := ledgermetrics.NewCollector(f.ledger.Store(), f.clock)
	said := func(n int) map[string]float64 {
		health := []string{"", "healthy", "unhealthy"}[n]
		f.clock.Advance(time.Minute)
		f.sendBeat("daemon", 0, f.beat(0, 1, int64(n), health, func(b *contract.Heartbeat) {
			b.Look.GPUs = b.Look.GPUs[:1]
			b.Look.GPUs[0].GPUTelemetry = telling(n)
		}))
		return f.gpuSums(collector)
	}
	first, second := said(1), said(2)
	descriptions := make(chan *prometheus.Desc, 100)
	collector.Describe(descriptions)
	close(descriptions)
	moved := 0
	for d := range descriptions {
		_, rest, _ := strings.Cut(d.String(), `"`)
		name, _, _ := strings.Cut(rest, `"`)
		if strings.HasPrefix(name, "forewarm_gpu_") {
			moved++
			require.Greater(t, second[name], first[name], name)
		}
	}
	require.Equal(t, 18, moved)
}
