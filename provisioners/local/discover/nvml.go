//go:build linux && cgo

package discover

import (
	"context"
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/forewarm/forewarm/core/capacity"
)

// NVML asks NVIDIA's management library. Library is the file to load; empty
// means the driver's own, by the loader's search path.
type NVML struct{ Library string }

// nvmlLock serialises every use of the library: go-nvml keeps the functions it
// resolved in package variables and sets them whenever a library is loaded.
var nvmlLock sync.Mutex

// required are the symbols that Devices calls. The library is bound lazily, so
// calling one that an old driver lacks ends the process; nothing can recover it.
var required = []string{
	"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
	"nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetTotalEccErrors", "nvmlShutdown",
}

// Devices lists the GPUs. A call into the driver cannot be interrupted: the
// context is only looked at before it.
func (n NVML) Devices(ctx context.Context) ([]capacity.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	nvmlLock.Lock()
	defer nvmlLock.Unlock()
	library := n.openLibrary()
	// After a failed Init no further call may be made, not even for its text.
	switch code := library.Init(); code {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, errNoLibrary
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, fmt.Errorf("%w: the library is there, the kernel module is not loaded", ErrNoDriver)
	default:
		return nil, fmt.Errorf("starting NVML: error %d", code)
	}
	for _, symbol := range required {
		if err := library.Extensions().LookupSymbol(symbol); err != nil {
			return nil, fmt.Errorf("the NVIDIA driver is too old: %w", err)
		}
	}
	defer library.Shutdown()
	return readAll(library)
}

func (n NVML) openLibrary() nvml.Interface {
	if n.Library == "" {
		return nvml.New()
	}
	return nvml.New(nvml.WithLibraryPath(n.Library))
}

func readAll(library nvml.Interface) ([]capacity.Device, error) {
	count, code := library.DeviceGetCount()
	if code != nvml.SUCCESS {
		return nil, fmt.Errorf("counting GPUs: NVML error %d", code)
	}
	devices := make([]capacity.Device, 0, count)
	for index := range count {
		handle, code := library.DeviceGetHandleByIndex(index)
		if code != nvml.SUCCESS {
			return nil, fmt.Errorf("finding GPU %d: NVML error %d", index, code)
		}
		parts, err := partsOf(library, handle)
		for i := 0; i < len(parts) && err == nil; i++ {
			var device capacity.Device
			if device, err = readDevice(parts[i], index); err == nil && !hasMemoryErrors(handle) {
				devices = append(devices, device)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("reading GPU %d: %w", index, err)
		}
	}
	return numberParts(devices), nil
}

// migSymbols are what it takes to list the MIG devices of a GPU.
var migSymbols = []string{"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount",
	"nvmlDeviceGetMigDeviceHandleByIndex"}

// partsOf returns the MIG devices of a GPU that is divided, which may be none, and otherwise the GPU.
func partsOf(library nvml.Interface, handle nvml.Device) ([]nvml.Device, error) {
	for _, symbol := range migSymbols {
		if library.Extensions().LookupSymbol(symbol) != nil {
			return []nvml.Device{handle}, nil
		}
	}
	if mode, _, code := handle.GetMigMode(); code != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return []nvml.Device{handle}, nil
	}
	count, code := handle.GetMaxMigDeviceCount()
	if code != nvml.SUCCESS {
		return nil, fmt.Errorf("counting its MIG devices: NVML error %d", code)
	}
	var parts []nvml.Device
	for i := range count {
		part, code := handle.GetMigDeviceHandleByIndex(i)
		switch code {
		case nvml.SUCCESS:
			parts = append(parts, part)
		case nvml.ERROR_NOT_FOUND: // places may be empty
		default:
			return nil, fmt.Errorf("finding MIG device %d: NVML error %d", i, code)
		}
	}
	return parts, nil
}

// hasMemoryErrors reports memory errors. A GPU that does not count them has none to show.
func hasMemoryErrors(handle nvml.Device) bool {
	uncorrected, code := handle.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	return code == nvml.SUCCESS && uncorrected > 0
}

func readDevice(handle nvml.Device, index int) (capacity.Device, error) {
	uuid, code := handle.GetUUID()
	if code != nvml.SUCCESS {
		return capacity.Device{}, fmt.Errorf("reading its UUID: NVML error %d", code)
	}
	name, code := handle.GetName()
	if code != nvml.SUCCESS {
		return capacity.Device{}, fmt.Errorf("reading its name: NVML error %d", code)
	}
	memory, code := handle.GetMemoryInfo()
	// Machines whose GPU shares the host's memory have no figure of their own.
	if code != nvml.SUCCESS && code != nvml.ERROR_NOT_SUPPORTED {
		return capacity.Device{}, fmt.Errorf("reading its memory: NVML error %d", code)
	}
	return capacity.Device{UUID: uuid, Index: index, Model: name, MemoryMiB: int(memory.Total >> 20)}, nil
}
