//go:build linux && cgo

package gpu

import (
	"encoding/binary"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/forewarm/forewarm/contract"
)

// measure fills in what the library tells of a GPU.
func (s *session) measure(h nvml.Device, t *contract.GPUTelemetry) {
	s.measureLoad(h, t)
	s.measurePower(h, t)
	s.measureErrors(h, t)
	if s.knows("nvmlDeviceGetFieldValues") {
		values := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
		if h.GetFieldValues(values) == nvml.SUCCESS && nvml.Return(values[0].NvmlReturn) == nvml.SUCCESS {
			t.Recovery = recoveryAction(binary.NativeEndian.Uint32(values[0].Value[:4]))
		}
	}
	if s.knows("nvmlDeviceGetMigMode") {
		if mode, _, code := h.GetMigMode(); code == nvml.SUCCESS {
			t.MIG = Of(mode == nvml.DEVICE_MIG_ENABLE)
		}
	}
}

func (s *session) measureLoad(h nvml.Device, t *contract.GPUTelemetry) {
	if s.knows("nvmlDeviceGetUtilizationRates") {
		if u, code := h.GetUtilizationRates(); code == nvml.SUCCESS {
			t.Utilization, t.MemoryBusy = Of(int(u.Gpu)), Of(int(u.Memory))
		}
	}
	if s.knows("nvmlDeviceGetMemoryInfo") {
		if m, code := h.GetMemoryInfo(); code == nvml.SUCCESS {
			t.MemoryUsedMiB, t.MemoryMiB = Of(int(m.Used>>20)), Of(int(m.Total>>20)) //nolint:gosec // MiB fit
		}
	}
	if s.knows("nvmlDeviceGetComputeRunningProcesses_v3") {
		if all, code := h.GetComputeRunningProcesses(); code == nvml.SUCCESS {
			t.Processes = Of(len(all))
		}
	}
}

func (s *session) measurePower(h nvml.Device, t *contract.GPUTelemetry) {
	if s.knows("nvmlDeviceGetTemperature") {
		if v, code := h.GetTemperature(nvml.TEMPERATURE_GPU); code == nvml.SUCCESS {
			t.Temperature = Of(int(v))
		}
	}
	if s.knows("nvmlDeviceGetPowerUsage") {
		if v, code := h.GetPowerUsage(); code == nvml.SUCCESS {
			t.Power = Of(float64(v) / 1000)
		}
	}
	if s.knows("nvmlDeviceGetEnforcedPowerLimit") {
		if v, code := h.GetEnforcedPowerLimit(); code == nvml.SUCCESS {
			t.PowerLimit = Of(float64(v) / 1000)
		}
	}
	if s.knows("nvmlDeviceGetClockInfo") {
		if v, code := h.GetClockInfo(nvml.CLOCK_SM); code == nvml.SUCCESS {
			t.SMClock = Of(int(v))
		}
		if v, code := h.GetClockInfo(nvml.CLOCK_MEM); code == nvml.SUCCESS {
			t.MemoryClock = Of(int(v))
		}
	}
	if s.knows("nvmlDeviceGetCurrentClocksThrottleReasons") {
		if bits, code := h.GetCurrentClocksThrottleReasons(); code == nvml.SUCCESS {
			t.Throttle = throttleReasons(bits)
		}
	}
}

func (s *session) measureErrors(h nvml.Device, t *contract.GPUTelemetry) {
	if s.knows("nvmlDeviceGetTotalEccErrors") {
		t.ECCVolatile = eccErrors(h, nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
		t.ECCAggregate = eccErrors(h, nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC)
		t.ECCCorrectedVolatile = eccErrors(h, nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
		t.ECCCorrectedAggregate = eccErrors(h, nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC)
	}
	if s.knows("nvmlDeviceGetRemappedRows") {
		if fixed, broken, pending, failed, code := h.GetRemappedRows(); code == nvml.SUCCESS {
			t.Remapped, t.RemapPending, t.RemapFailed = Of(fixed+broken), &pending, &failed
		}
	}
	if s.knows("nvmlDeviceGetNvLinkErrorCounter") {
		t.NVLinkErrors = nvlinkErrors(h)
	}
}

// eccErrors counts errors of a GPU's memory; nil: it does not tell.
func eccErrors(h nvml.Device, kind nvml.MemoryErrorType, counter nvml.EccCounterType) *int64 {
	n, code := h.GetTotalEccErrors(kind, counter)
	if code != nvml.SUCCESS {
		return nil
	}
	return Of(int64(n)) //nolint:gosec // a count
}

// nvlinkErrors adds up the errors of all links; nil: none tells.
func nvlinkErrors(h nvml.Device) *int64 {
	var sum *int64
	for link := range nvml.NVLINK_MAX_LINKS {
		for _, kind := range []nvml.NvLinkErrorCounter{nvml.NVLINK_ERROR_DL_REPLAY, nvml.NVLINK_ERROR_DL_RECOVERY,
			nvml.NVLINK_ERROR_DL_CRC_FLIT} {
			n, code := h.GetNvLinkErrorCounter(link, kind)
			if code != nvml.SUCCESS {
				break
			}
			if sum == nil {
				sum = new(int64)
			}
			*sum += int64(n) //nolint:gosec // a count
		}
	}
	return sum
}

// recoveryActions are the values of the driver's field 230.
var recoveryActions = []string{"none", "reset", "reboot", "drain_p2p", "drain_and_reset"}

func recoveryAction(value uint32) string {
	if int(value) < len(recoveryActions) {
		return recoveryActions[value]
	}
	return "unknown"
}
