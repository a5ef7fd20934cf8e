package ledgermetrics

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// said is what is counted of a look.
type said struct {
	GPUs []saidGPU `json:"gpus"`
}

// saidGPU is what is counted of a GPU. Nil: it does not tell.
type saidGPU struct {
	UUID           string   `json:"uuid"`
	Parent         string   `json:"parent"` // of a MIG device: the UUID of its GPU
	Index          int      `json:"index"`
	Health         string   `json:"health"`
	Utilization    *float64 `json:"utilization_percent"`
	SMActivity     *float64 `json:"sm_activity_percent"`
	MemoryMiB      *float64 `json:"memory_used_mib"`
	Temperature    *float64 `json:"temperature_celsius"`
	Power          *float64 `json:"power_watts"`
	SMClock        *float64 `json:"sm_clock_mhz"`
	MemoryClock    *float64 `json:"memory_clock_mhz"`
	Throttle       []string `json:"throttle"`
	Volatile       *float64 `json:"ecc_uncorrected_volatile"`
	Aggregate      *float64 `json:"ecc_uncorrected_aggregate"`
	FixedVolatile  *float64 `json:"ecc_corrected_volatile"`
	FixedAggregate *float64 `json:"ecc_corrected_aggregate"`
	Remapped       *float64 `json:"remapped_rows"`
	XIDs           *float64 `json:"xid_count"`
	LastXID        *float64 `json:"last_xid"`
	NVLinkErrors   *float64 `json:"nvlink_errors"`
	NVLinksUp      *float64 `json:"nvlinks_up"`
	NVLinkSent     *float64 `json:"nvlink_sent_bytes_per_second"`
	NVLinkReceived *float64 `json:"nvlink_received_bytes_per_second"`
	PCIeGeneration *float64 `json:"pcie_generation"`
	PCIeWidth      *float64 `json:"pcie_width"`
	PCIeSent       *float64 `json:"pcie_sent_bytes_per_second"`
	PCIeReceived   *float64 `json:"pcie_received_bytes_per_second"`
}

// figure is one series of each GPU that tells it.
type figure struct {
	gauge
	kind   prometheus.ValueType
	by     float64 // the unit in which it is told, in that of the metric
	of     func(saidGPU) *float64
	labels []string // after those of the GPU
}

func newFigure(name, help string, labels ...string) gauge {
	return newGauge("gpu_"+name, help, append([]string{"pool", "node", "gpu", "uuid"}, labels...)...)
}

const (
	counter = prometheus.CounterValue
	level   = prometheus.GaugeValue
	mega    = 1e6
	percent = 0.01
)

var (
	gpuUse         = newFigure("utilization_ratio", "Share of the time in which something ran on the GPU.")
	gpuActivity    = newFigure("sm_activity_ratio", "Share of the GPU's multiprocessors that worked, on average.")
	gpuMemory      = newFigure("memory_used_bytes", "Memory of the GPU in use.")
	gpuTemperature = newFigure("temperature_celsius", "Temperature of the GPU.")
	gpuPower       = newFigure("power_watts", "Power that the GPU draws.")
	gpuUnhealthy   = newFigure("unhealthy", "1 while the node's daemon finds the GPU unhealthy, else 0.")
	gpuClock       = newFigure("clock_hertz", "Clock of the GPU's multiprocessors (sm), or of its memory.", "clock")
	gpuThrottled   = newFigure("throttled", "1 for each reason for which the GPU's clocks are low now.", "reason")
	gpuECC         = newFigure("ecc_errors_total",
		"Errors of the GPU's memory: volatile ones since the driver was loaded, aggregate ones since it was made.",
		"error", "counter")
	gpuRemapped  = newFigure("remapped_rows", "Rows of the GPU's memory that were remapped after errors.")
	gpuXIDs      = newFigure("xids_total", "Errors that the driver reported (XIDs) of the GPU, since its machine booted.")
	gpuLastXID   = newFigure("last_xid", "The last XID of the GPU since its machine booted.")
	gpuLinkFault = newFigure("nvlink_errors_total", "Replays, recoveries and CRC errors of the GPU's NVLinks.")
	gpuLinksUp   = newFigure("nvlinks_up", "NVLinks of the GPU that are up.")
	gpuLinkBytes = newFigure("nvlink_bytes_per_second", "Rate at which the GPU sends and receives by NVLink.",
		"direction")
	gpuPCIeGeneration = newFigure("pcie_generation", "PCIe generation at which the GPU's link works now.")
	gpuPCIeWidth      = newFigure("pcie_width_lanes", "PCIe lanes that the GPU's link uses now.")
	gpuPCIeBytes      = newFigure("pcie_bytes_per_second", "Rate at which the GPU sends and receives by PCIe.",
		"direction")
)

// gpuGauges are all that GPUs tell.
var gpuGauges = []gauge{gpuUse, gpuActivity, gpuMemory, gpuTemperature, gpuPower, gpuUnhealthy, gpuClock, gpuThrottled,
	gpuECC, gpuRemapped, gpuXIDs, gpuLastXID, gpuLinkFault, gpuLinksUp, gpuLinkBytes, gpuPCIeGeneration, gpuPCIeWidth,
	gpuPCIeBytes}

// figures are those that a GPU tells as a number.
var figures = []figure{
	{gpuUse, level, percent, func(g saidGPU) *float64 { return g.Utilization }, nil},
	{gpuActivity, level, percent, func(g saidGPU) *float64 { return g.SMActivity }, nil},
	{gpuMemory, level, 1 << 20, func(g saidGPU) *float64 { return g.MemoryMiB }, nil},
	{gpuTemperature, level, 1, func(g saidGPU) *float64 { return g.Temperature }, nil},
	{gpuPower, level, 1, func(g saidGPU) *float64 { return g.Power }, nil},
	{gpuClock, level, mega, func(g saidGPU) *float64 { return g.SMClock }, []string{"sm"}},
	{gpuClock, level, mega, func(g saidGPU) *float64 { return g.MemoryClock }, []string{"memory"}},
}

// wholeFigures are those of the whole GPU, where MIG divides it: each of its MIG devices tells the same.
var wholeFigures = []figure{
	{gpuECC, counter, 1, func(g saidGPU) *float64 { return g.Volatile }, []string{"uncorrected", "volatile"}},
	{gpuECC, counter, 1, func(g saidGPU) *float64 { return g.Aggregate }, []string{"uncorrected", "aggregate"}},
	{gpuECC, counter, 1, func(g saidGPU) *float64 { return g.FixedVolatile }, []string{"corrected", "volatile"}},
	{gpuECC, counter, 1, func(g saidGPU) *float64 { return g.FixedAggregate }, []string{"corrected", "aggregate"}},
	{gpuRemapped, level, 1, func(g saidGPU) *float64 { return g.Remapped }, nil},
	{gpuXIDs, counter, 1, func(g saidGPU) *float64 { return g.XIDs }, nil},
	{gpuLastXID, level, 1, func(g saidGPU) *float64 { return g.LastXID }, nil},
	{gpuLinkFault, counter, 1, func(g saidGPU) *float64 { return g.NVLinkErrors }, nil},
	{gpuLinksUp, level, 1, func(g saidGPU) *float64 { return g.NVLinksUp }, nil},
	{gpuLinkBytes, level, 1, func(g saidGPU) *float64 { return g.NVLinkSent }, []string{"sent"}},
	{gpuLinkBytes, level, 1, func(g saidGPU) *float64 { return g.NVLinkReceived }, []string{"received"}},
	{gpuPCIeGeneration, level, 1, func(g saidGPU) *float64 { return g.PCIeGeneration }, nil},
	{gpuPCIeWidth, level, 1, func(g saidGPU) *float64 { return g.PCIeWidth }, nil},
	{gpuPCIeBytes, level, 1, func(g saidGPU) *float64 { return g.PCIeSent }, []string{"sent"}},
	{gpuPCIeBytes, level, 1, func(g saidGPU) *float64 { return g.PCIeReceived }, []string{"received"}},
}

// throttleReasons are those that have a series; what else a daemon says is otherReason, so that its words are no
// labels.
var throttleReasons = []string{"applications_clocks", "power_cap", "hardware_slowdown", "sync_boost",
	"software_thermal", "hardware_thermal", "hardware_power_brake", "display_clocks"}

const otherReason = "other"

// metrics are the series of a GPU, or of a MIG device without those of its whole GPU. A figure that it does not tell
// has none.
func (g saidGPU) metrics(pool, nodeID string) []prometheus.Metric {
	gpu := []string{pool, nodeID, strconv.Itoa(g.Index), g.UUID}
	all := g.tell(figures, gpu)
	if g.Parent == "" {
		all = append(all, g.tell(wholeFigures, gpu)...)
	}
	for _, reason := range g.reasons() {
		all = append(all, newMetric(gpuThrottled, level, 1, gpu, reason))
	}
	return append(all, newMetric(gpuUnhealthy, level, float64(boolToInt(g.Health == "unhealthy")), gpu))
}

// wholeMetrics are the series of the GPU of which this is a MIG device. It has no index: its MIG devices have.
func (g saidGPU) wholeMetrics(pool, nodeID string) []prometheus.Metric {
	return g.tell(wholeFigures, []string{pool, nodeID, "", g.Parent})
}

// tell is the series of those figures that a GPU tells, under its labels.
func (g saidGPU) tell(all []figure, gpu []string) (told []prometheus.Metric) {
	for _, f := range all {
		if v := f.of(g); v != nil {
			told = append(told, newMetric(f.gauge, f.kind, *v*f.by, gpu, f.labels...))
		}
	}
	return told
}

func newMetric(f gauge, kind prometheus.ValueType, value float64, gpu []string, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(f.Desc, kind, value, slices.Concat(gpu, labels)...)
}

// reasons are those for which its clocks are low, each once.
func (g saidGPU) reasons() []string {
	var all []string
	for _, reason := range g.Throttle {
		if !slices.Contains(throttleReasons, reason) {
			reason = otherReason
		}
		if !slices.Contains(all, reason) {
			all = append(all, reason)
		}
	}
	return all
}
