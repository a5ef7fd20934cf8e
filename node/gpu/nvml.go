//go:build linux && cgo

package gpu

import (
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/forewarm/forewarm/contract"
)

// HasNVML says whether this program can ask NVIDIA's library.
const HasNVML = true

// required are the symbols without which there is no look. The library is bound lazily:
// calling one that a driver lacks ends the process, so that every other is looked up
// before it is called.
var required = []string{"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID",
	"nvmlDeviceGetName", "nvmlShutdown"}

// session is the library in a process of its own.
type session struct {
	library nvml.Interface
	err     error // it cannot be used; nothing of it may be called, not even for the error's text
	has     map[string]bool
	events  nvml.EventSet
	samples map[string]nvml.GpmSample // of each GPU's counters, by UUID, of the look before
	watched bool
}

func openLibrary(path string) *session {
	s := &session{library: nvml.New(), has: map[string]bool{}, samples: map[string]nvml.GpmSample{}}
	if path != "" {
		s.library = nvml.New(nvml.WithLibraryPath(path))
	}
	switch code := s.library.Init(); code {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		s.err = fmt.Errorf("%w: the library is not there", ErrNoDriver)
		return s
	case nvml.ERROR_DRIVER_NOT_LOADED:
		s.err = fmt.Errorf("%w: the library is there, the kernel module is not loaded", ErrNoDriver)
		return s
	default:
		s.err = fmt.Errorf("NVML does not start: error %d", code)
		return s
	}
	for _, symbol := range required {
		if !s.knows(symbol) {
			s.err = fmt.Errorf("the NVIDIA driver is too old: it lacks %s", symbol)
			return s
		}
	}
	return s
}

func (s *session) close() {
	if s.err == nil {
		s.library.Shutdown()
	}
}

// knows reports whether the library has a function.
func (s *session) knows(symbol string) bool {
	known, asked := s.has[symbol]
	if !asked {
		known = s.library.Extensions().LookupSymbol(symbol) == nil
		s.has[symbol] = known
	}
	return known
}

func (s *session) look(pcie bool) (Reading, error) {
	if s.err != nil {
		return Reading{}, s.err
	}
	count, code := s.library.DeviceGetCount()
	if code != nvml.SUCCESS {
		return Reading{}, fmt.Errorf("counting GPUs: NVML error %d", code)
	}
	r := Reading{Look: contract.NodeLook{Source: FromNVML, GPUs: []contract.LookGPU{}}}
	if s.knows("nvmlSystemGetDriverVersion") {
		r.Look.Driver, _ = s.library.SystemGetDriverVersion()
	}
	var handles []nvml.Device
	for index := range count {
		handle, code := s.library.DeviceGetHandleByIndex(index)
		if code != nvml.SUCCESS { // it is lost, or out of reach: the others still say something
			r.Look.Problem = fmt.Sprintf("GPU %d cannot be reached: NVML error %d", index, code)
			continue
		}
		g, err := s.identify(handle, index)
		if err != nil {
			r.Look.Problem = err.Error()
			continue
		}
		s.measure(handle, &g.GPUTelemetry)
		s.measureLinks(handle, pcie, &g.GPUTelemetry)
		s.measureActivity(handle, g.UUID, &g.GPUTelemetry)
		handles = append(handles, handle)
		parts := []contract.LookGPU{g}
		if g.MIG != nil && *g.MIG {
			if parts, err = s.divide(handle, g); err != nil { // it is there, with nothing on it to hand out
				parts, r.Look.Problem = []contract.LookGPU{g}, err.Error()
			}
		}
		r.Look.GPUs = append(r.Look.GPUs, parts...)
	}
	if slices.ContainsFunc(r.Look.GPUs, func(g contract.LookGPU) bool { return g.Parent != "" }) {
		for i := range r.Look.GPUs { // those of one GPU would all have its own
			r.Look.GPUs[i].Index = i
		}
	}
	s.watch(handles)
	r.Events, r.HearsXIDs = s.takeEvents(), s.events != nil
	return r, nil
}

func (s *session) identify(h nvml.Device, index int) (contract.LookGPU, error) {
	g := contract.LookGPU{Index: index}
	var code nvml.Return
	if g.UUID, code = h.GetUUID(); code != nvml.SUCCESS {
		return g, fmt.Errorf("GPU %d does not tell its UUID: NVML error %d", index, code)
	}
	g.Model, _ = h.GetName()
	if s.knows("nvmlDeviceGetMinorNumber") {
		if minor, code := h.GetMinorNumber(); code == nvml.SUCCESS {
			g.Minor = &minor
		}
	}
	if s.knows("nvmlDeviceGetPciInfo_v3") {
		if info, code := h.GetPciInfo(); code == nvml.SUCCESS {
			g.PCI = fmt.Sprintf("%04x:%02x:%02x", info.Domain, info.Bus, info.Device)
		}
	}
	return g, nil
}

// watch registers for the XIDs of GPUs, once.
func (s *session) watch(handles []nvml.Device) {
	if s.watched || !s.knows("nvmlEventSetCreate") || !s.knows("nvmlDeviceRegisterEvents") ||
		!s.knows("nvmlEventSetWait_v2") {
		return
	}
	s.watched = true
	set, code := s.library.EventSetCreate()
	if code != nvml.SUCCESS {
		return
	}
	s.events = set
	for _, h := range handles {
		h.RegisterEvents(nvml.EventTypeXidCriticalError, set)
	}
}

// mostEvents bounds what one look takes of a storm.
const mostEvents = 256

func (s *session) takeEvents() []Event {
	if s.events == nil {
		return nil
	}
	merged := map[Event]int{}
	for range mostEvents {
		data, code := s.events.Wait(0)
		if code != nvml.SUCCESS {
			break
		}
		if uuid, code := data.Device.GetUUID(); code == nvml.SUCCESS {
			merged[Event{UUID: uuid, Code: int(data.EventData)}]++ //nolint:gosec // XIDs are small
		}
	}
	return countEvents(merged)
}
