//go:build linux && cgo

package gpu

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// resetClocks resets the clocks of GPUs, one after another.
func (s *session) resetClocks(uuids []string) ([]ClockReset, error) {
	if s.err != nil {
		return nil, s.err
	}
	var all []ClockReset
	for _, uuid := range uuids {
		r := ClockReset{UUID: uuid}
		switch device, code := s.find(uuid); code {
		case nvml.SUCCESS:
			s.resetClocksOf(device, &r)
		default:
			r.Why = fmt.Sprintf("a GPU cannot be reached (NVML error %d)", code)
		}
		all = append(all, r)
	}
	return all, nil
}

func (s *session) find(uuid string) (nvml.Device, nvml.Return) {
	if !s.knows("nvmlDeviceGetHandleByUUID") {
		return nil, nvml.ERROR_FUNCTION_NOT_FOUND
	}
	return s.library.DeviceGetHandleByUUID(uuid)
}

func (s *session) resetClocksOf(d nvml.Device, r *ClockReset) {
	for _, reset := range []struct {
		symbol string
		do     func() nvml.Return
	}{{"nvmlDeviceResetGpuLockedClocks", d.ResetGpuLockedClocks},
		{"nvmlDeviceResetMemoryLockedClocks", d.ResetMemoryLockedClocks},
		{"nvmlDeviceResetApplicationsClocks", d.ResetApplicationsClocks}} {
		if !s.knows(reset.symbol) {
			continue
		}
		switch code := reset.do(); code {
		case nvml.SUCCESS:
			r.Reset = true
		case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT: // it has none of these
		case nvml.ERROR_NO_PERMISSION:
			r.Why = "the daemon may not"
			return
		default:
			r.Why = fmt.Sprintf("NVML error %d", code)
			return
		}
	}
	if r.Reset {
		r.Wrong = s.wrongClock(d)
		return
	}
	r.Why = "the driver cannot"
}

// wrongClock says which clock that is set for applications is not its default; empty: none that can be read. What
// clocks are locked to, the driver does not tell.
func (s *session) wrongClock(d nvml.Device) string {
	if !s.knows("nvmlDeviceGetApplicationsClock") || !s.knows("nvmlDeviceGetDefaultApplicationsClock") {
		return ""
	}
	for name, clock := range map[string]nvml.ClockType{"graphics": nvml.CLOCK_GRAPHICS, "memory": nvml.CLOCK_MEM} {
		is, code1 := d.GetApplicationsClock(clock)
		usual, code2 := d.GetDefaultApplicationsClock(clock)
		if code1 == nvml.SUCCESS && code2 == nvml.SUCCESS && is != usual {
			return fmt.Sprintf("that of %s is still %d MHz instead of %d", name, is, usual)
		}
	}
	return ""
}
