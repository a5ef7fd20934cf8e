package dcgm

import (
	"math"

	"github.com/forewarm/forewarm/contract"
)

// page is what an exporter tells of one GPU: the values of its metrics, by name.
type page map[string]float64

// field is a figure as the wire calls it, which an exporter can fill in.
type field struct {
	name string
	fill func(*contract.GPUTelemetry, page) bool
}

// figure is a field that is the sum of metrics, all of which have to be there, in the unit of the wire.
func figure[T int | int64 | float64](name string, of func(*contract.GPUTelemetry) **T, by, most float64,
	metrics ...string) field {
	return field{name, func(t *contract.GPUTelemetry, told page) bool {
		to := of(t)
		if *to != nil {
			return false
		}
		sum := 0.0
		for _, metric := range metrics {
			v, there := told[prefix+metric]
			if !there {
				return false
			}
			sum += v * by
		}
		if !(sum >= 0 && sum <= most) { // DCGM writes a huge number for what there is not
			return false
		}
		if _, whole := any(*to).(*float64); !whole {
			sum = math.Round(sum)
		}
		v := T(sum)
		*to = &v
		return true
	}}
}

const (
	prefix    = "DCGM_FI_"
	percent   = 100
	mostMiB   = 1 << 24
	mostCount = 1 << 53
)

// fields are in the order in which a look names them.
var fields = []field{
	figure("utilization_percent", func(t *contract.GPUTelemetry) **int { return &t.Utilization }, 1, percent,
		"DEV_GPU_UTIL"),
	figure("memory_busy_percent", func(t *contract.GPUTelemetry) **int { return &t.MemoryBusy }, 1, percent,
		"DEV_MEM_COPY_UTIL"),
	figure("sm_activity_percent", func(t *contract.GPUTelemetry) **float64 { return &t.SMActivity }, percent, percent,
		"PROF_SM_ACTIVE"),
	figure("memory_total_mib", func(t *contract.GPUTelemetry) **int { return &t.MemoryMiB }, 1, mostMiB,
		"DEV_FB_USED", "DEV_FB_FREE", "DEV_FB_RESERVED"),
	figure("memory_total_mib", func(t *contract.GPUTelemetry) **int { return &t.MemoryMiB }, 1, mostMiB,
		"DEV_FB_USED", "DEV_FB_FREE"), // of an exporter that does not tell what is reserved
	figure("memory_used_mib", func(t *contract.GPUTelemetry) **int { return &t.MemoryUsedMiB }, 1, mostMiB,
		"DEV_FB_USED"),
	figure("temperature_celsius", func(t *contract.GPUTelemetry) **int { return &t.Temperature }, 1, 1000,
		"DEV_GPU_TEMP"),
	figure("power_watts", func(t *contract.GPUTelemetry) **float64 { return &t.Power }, 1, 1e5, "DEV_POWER_USAGE"),
	figure("sm_clock_mhz", func(t *contract.GPUTelemetry) **int { return &t.SMClock }, 1, 1e5, "DEV_SM_CLOCK"),
	figure("memory_clock_mhz", func(t *contract.GPUTelemetry) **int { return &t.MemoryClock }, 1, 1e5, "DEV_MEM_CLOCK"),
	figure("ecc_uncorrected_volatile", func(t *contract.GPUTelemetry) **int64 { return &t.ECCVolatile }, 1, mostCount,
		"DEV_ECC_DBE_VOL_TOTAL"),
	figure("ecc_uncorrected_aggregate", func(t *contract.GPUTelemetry) **int64 { return &t.ECCAggregate }, 1, mostCount,
		"DEV_ECC_DBE_AGG_TOTAL"),
	figure("ecc_corrected_volatile", func(t *contract.GPUTelemetry) **int64 { return &t.ECCCorrectedVolatile }, 1,
		mostCount, "DEV_ECC_SBE_VOL_TOTAL"),
	figure("ecc_corrected_aggregate", func(t *contract.GPUTelemetry) **int64 { return &t.ECCCorrectedAggregate }, 1,
		mostCount, "DEV_ECC_SBE_AGG_TOTAL"),
	figure("remapped_rows", func(t *contract.GPUTelemetry) **int { return &t.Remapped }, 1, 1<<30,
		"DEV_UNCORRECTABLE_REMAPPED_ROWS", "DEV_CORRECTABLE_REMAPPED_ROWS"),
	{"last_xid", fillLastXID},
	figure("nvlink_errors", func(t *contract.GPUTelemetry) **int64 { return &t.NVLinkErrors }, 1, mostCount,
		"DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
		"DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
	figure("nvlink_sent_bytes_per_second", func(t *contract.GPUTelemetry) **int64 { return &t.NVLinkSent }, 1, mostCount,
		"PROF_NVLINK_TX_BYTES"),
	figure("nvlink_received_bytes_per_second", func(t *contract.GPUTelemetry) **int64 { return &t.NVLinkReceived }, 1,
		mostCount, "PROF_NVLINK_RX_BYTES"),
	figure("pcie_generation", func(t *contract.GPUTelemetry) **int { return &t.PCIeGeneration }, 1, 64,
		"DEV_PCIE_LINK_GEN"),
	figure("pcie_generation_max", func(t *contract.GPUTelemetry) **int { return &t.PCIeGenerationMax }, 1, 64,
		"DEV_PCIE_MAX_LINK_GEN"),
	figure("pcie_width", func(t *contract.GPUTelemetry) **int { return &t.PCIeWidth }, 1, 64, "DEV_PCIE_LINK_WIDTH"),
	figure("pcie_width_max", func(t *contract.GPUTelemetry) **int { return &t.PCIeWidthMax }, 1, 64,
		"DEV_PCIE_MAX_LINK_WIDTH"),
	figure("pcie_sent_bytes_per_second", func(t *contract.GPUTelemetry) **int64 { return &t.PCIeSent }, 1, mostCount,
		"PROF_PCIE_TX_BYTES"),
	figure("pcie_received_bytes_per_second", func(t *contract.GPUTelemetry) **int64 { return &t.PCIeReceived }, 1,
		mostCount, "PROF_PCIE_RX_BYTES"),
}

// fillLastXID fills in the last error; 0 says that there was none.
func fillLastXID(t *contract.GPUTelemetry, told page) bool {
	v, there := told[prefix+"DEV_XID_ERRORS"]
	if !there || t.LastXID != nil || !(v >= 1 && v <= math.MaxUint16) {
		return false
	}
	code := int(v)
	t.LastXID = &code
	return true
}

// rates are gauges of bytes a second in exporters of today. Where one calls them counters, they count bytes, and are no
// rates.
var rates = []string{prefix + "PROF_PCIE_TX_BYTES", prefix + "PROF_PCIE_RX_BYTES", prefix + "PROF_NVLINK_TX_BYTES",
	prefix + "PROF_NVLINK_RX_BYTES"}
