//go:build linux && cgo

package gpu

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/forewarm/forewarm/contract"
)

// migSymbols are what it takes to list the MIG devices of a GPU.
var migSymbols = []string{"nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex",
	"nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId"}

// divide returns the MIG devices that a GPU consists of. What is measured of the whole GPU, such as its heat, is said
// of each, but for its power, of which nobody knows each one's part; load, memory and processes are each one's own
// (NVIDIA MIG User Guide, "Monitoring MIG Devices").
func (s *session) divide(h nvml.Device, parent contract.LookGPU) ([]contract.LookGPU, error) {
	for _, symbol := range migSymbols {
		if !s.knows(symbol) {
			return nil, fmt.Errorf("GPU %s is divided by MIG, and the driver lacks %s", parent.UUID, symbol)
		}
	}
	count, code := h.GetMaxMigDeviceCount()
	if code != nvml.SUCCESS {
		return nil, fmt.Errorf("counting the MIG devices of GPU %s: NVML error %d", parent.UUID, code)
	}
	var all []contract.LookGPU
	for i := range count {
		part, code := h.GetMigDeviceHandleByIndex(i)
		if code == nvml.ERROR_NOT_FOUND { // places may be empty
			continue
		}
		if code != nvml.SUCCESS {
			return nil, fmt.Errorf("finding MIG device %d of GPU %s: NVML error %d", i, parent.UUID, code)
		}
		g, err := s.identifyPart(part, parent)
		if err != nil {
			return nil, fmt.Errorf("reading MIG device %d of GPU %s: %w", i, parent.UUID, err)
		}
		all = append(all, g)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("GPU %s is in MIG mode and has no MIG devices", parent.UUID)
	}
	return all, nil
}

// identifyPart returns a MIG device of a GPU.
func (s *session) identifyPart(h nvml.Device, parent contract.LookGPU) (contract.LookGPU, error) {
	g := parent
	var code nvml.Return
	if g.UUID, code = h.GetUUID(); code != nvml.SUCCESS {
		return g, fmt.Errorf("reading its UUID: NVML error %d", code)
	}
	if name, code := h.GetName(); code == nvml.SUCCESS {
		g.Model = name
	}
	g.Parent = parent.UUID
	g.Utilization, g.MemoryBusy, g.MemoryUsedMiB, g.MemoryMiB, g.Processes = nil, nil, nil, nil, nil
	g.Power, g.PowerLimit = nil, nil
	g.SMActivity, g.PCIeSent, g.PCIeReceived, g.NVLinkSent, g.NVLinkReceived = nil, nil, nil, nil, nil
	s.measureLoad(h, &g.GPUTelemetry)
	gpu, code1 := h.GetGpuInstanceId()
	compute, code2 := h.GetComputeInstanceId()
	if code1 == nvml.SUCCESS && code2 == nvml.SUCCESS && parent.Minor != nil {
		g.Capabilities = capabilitiesOf(*parent.Minor, gpu, compute)
	}
	return g, nil
}
