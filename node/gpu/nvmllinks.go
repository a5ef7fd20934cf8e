//go:build linux && cgo

package gpu

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/forewarm/forewarm/contract"
)

// measureLinks fills in what a GPU tells of its PCIe link and of its NVLinks. Its PCIe throughput blocks 20 ms for each
// direction, and is measured only when that is asked for.
func (s *session) measureLinks(h nvml.Device, throughput bool, t *contract.GPUTelemetry) {
	for _, figure := range []struct {
		symbol string
		read   func() (int, nvml.Return)
		to     **int
	}{{"nvmlDeviceGetCurrPcieLinkGeneration", h.GetCurrPcieLinkGeneration, &t.PCIeGeneration},
		{"nvmlDeviceGetMaxPcieLinkGeneration", h.GetMaxPcieLinkGeneration, &t.PCIeGenerationMax},
		{"nvmlDeviceGetCurrPcieLinkWidth", h.GetCurrPcieLinkWidth, &t.PCIeWidth},
		{"nvmlDeviceGetMaxPcieLinkWidth", h.GetMaxPcieLinkWidth, &t.PCIeWidthMax}} {
		if !s.knows(figure.symbol) {
			continue
		}
		if v, code := figure.read(); code == nvml.SUCCESS {
			*figure.to = &v
		}
	}
	if throughput && s.knows("nvmlDeviceGetPcieThroughput") {
		t.PCIeSent, t.PCIeReceived = pcieRate(h, nvml.PCIE_UTIL_TX_BYTES), pcieRate(h, nvml.PCIE_UTIL_RX_BYTES)
	}
	if s.knows("nvmlDeviceGetNvLinkState") {
		t.NVLinks, t.NVLinksUp = countNVLinks(h)
	}
}

// pcieRate is what a GPU sends or receives, in bytes a second; nil: it does not tell.
func pcieRate(h nvml.Device, direction nvml.PcieUtilCounter) *int64 {
	kilobytes, code := h.GetPcieThroughput(direction)
	if code != nvml.SUCCESS {
		return nil
	}
	return Of(1000 * int64(kilobytes))
}

// countNVLinks counts the links that a GPU has, and those that are up; nil: it has none.
func countNVLinks(h nvml.Device) (all, up *int) {
	links, active := 0, 0
	for link := range nvml.NVLINK_MAX_LINKS {
		state, code := h.GetNvLinkState(link)
		if code != nvml.SUCCESS {
			continue
		}
		if links++; state == nvml.FEATURE_ENABLED {
			active++
		}
	}
	if links == 0 {
		return nil, nil
	}
	return &links, &active
}

// gpmSymbols are what it takes to read the counters that Hopper and later GPUs keep for each look to read (GPM).
var gpmSymbols = []string{"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet",
	"nvmlGpmSampleFree"}

// measureActivity fills in what the GPU did since the look before, by two samples of its counters. The first look has
// none, nor has a GPU that keeps no such counters, or shows them to administrators alone.
func (s *session) measureActivity(h nvml.Device, uuid string, t *contract.GPUTelemetry) {
	if !s.keepsCounters(h) {
		return
	}
	sample, code := s.library.GpmSampleAlloc()
	if code != nvml.SUCCESS {
		return
	}
	if s.library.GpmSampleGet(h, sample) != nvml.SUCCESS {
		sample.Free()
		return
	}
	before := s.samples[uuid]
	s.samples[uuid] = sample
	if before == nil {
		return
	}
	s.compare(before, sample, t)
	before.Free()
}

func (s *session) keepsCounters(h nvml.Device) bool {
	for _, symbol := range gpmSymbols {
		if !s.knows(symbol) {
			return false
		}
	}
	support, code := s.library.GpmQueryDeviceSupport(h)
	return code == nvml.SUCCESS && support.IsSupportedDevice != 0
}

// compare fills in what two samples say of the time between them.
func (s *session) compare(before, after nvml.GpmSample, t *contract.GPUTelemetry) {
	wanted := [5]nvml.GpmMetricId{nvml.GPM_METRIC_SM_UTIL, nvml.GPM_METRIC_PCIE_TX_PER_SEC,
		nvml.GPM_METRIC_PCIE_RX_PER_SEC, nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC}
	asked := &nvml.GpmMetricsGetType{NumMetrics: 5, Sample1: before, Sample2: after}
	for i, id := range wanted {
		asked.Metrics[i].MetricId = uint32(id) //nolint:gosec // a small constant
	}
	if s.library.GpmMetricsGet(asked) != nvml.SUCCESS {
		return
	}
	if v, ok := toldBy(asked.Metrics[0]); ok {
		t.SMActivity = Of(min(math.Round(v*100)/100, 100))
	}
	for i, to := range []**int64{&t.PCIeSent, &t.PCIeReceived, &t.NVLinkSent, &t.NVLinkReceived} {
		if v, ok := toldBy(asked.Metrics[i+1]); ok {
			*to = Of(int64(v * (1 << 20)))
		}
	}
}

// mostRate is more than any link carries, in MiB a second.
const mostRate = 1e8

// toldBy is the value of a metric, if it has one.
func toldBy(m nvml.GpmMetric) (float64, bool) {
	told := nvml.Return(m.NvmlReturn) == nvml.SUCCESS //nolint:gosec // a code
	return m.Value, told && m.Value >= 0 && m.Value < mostRate
}
