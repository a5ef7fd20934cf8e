//go:build linux && cgo

package gpu

import (
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// The settings of a GPU that outlive whoever made them, by the names under which they are remembered. Persistence mode
// is none of them: it is the machine's, whose nvidia-persistenced may begin after the daemon.
const (
	powerLimit  = "power limit"  // in milliwatts
	computeMode = "compute mode" // as NVML numbers them
	eccPending  = "ECC mode"     // 0 or 1, from the next reset on
	migPending  = "MIG mode"     // as above
	migCurrent  = "MIG mode now"
)

// setting is one of a GPU's settings, as the library reads and writes it.
type setting struct {
	name    string
	symbols []string // that the driver must have
	read    func(nvml.Device) (uint32, nvml.Return)
	write   func(nvml.Device, uint32) nvml.Return // nil: it follows another one
	follows string                                // the name of that one
}

// allSettings are those that are restored, in this order.
var allSettings = []setting{
	{name: powerLimit, symbols: []string{"nvmlDeviceGetPowerManagementLimit", "nvmlDeviceSetPowerManagementLimit"},
		read:  nvml.Device.GetPowerManagementLimit,
		write: nvml.Device.SetPowerManagementLimit},
	{name: computeMode, symbols: []string{"nvmlDeviceGetComputeMode", "nvmlDeviceSetComputeMode"},
		read: func(d nvml.Device) (uint32, nvml.Return) {
			mode, code := d.GetComputeMode()
			return uint32(mode), code //nolint:gosec // it is one of four
		},
		write: func(d nvml.Device, v uint32) nvml.Return {
			return d.SetComputeMode(nvml.ComputeMode(v)) //nolint:gosec // as above
		}},
	{name: eccPending, symbols: []string{"nvmlDeviceGetEccMode", "nvmlDeviceSetEccMode"},
		read: func(d nvml.Device) (uint32, nvml.Return) {
			_, mode, code := d.GetEccMode()
			return uint32(mode), code //nolint:gosec // it is 0 or 1
		},
		write: func(d nvml.Device, v uint32) nvml.Return {
			return d.SetEccMode(nvml.EnableState(v)) //nolint:gosec // as above
		}},
	{name: migPending, symbols: []string{"nvmlDeviceGetMigMode", "nvmlDeviceSetMigMode"},
		read: func(d nvml.Device) (uint32, nvml.Return) {
			_, mode, code := d.GetMigMode()
			return uint32(mode), code //nolint:gosec // it is 0 or 1
		},
		write: func(d nvml.Device, v uint32) nvml.Return {
			activation, code := d.SetMigMode(int(v))
			if code != nvml.SUCCESS {
				return code
			}
			return activation
		}},
	{name: migCurrent, symbols: []string{"nvmlDeviceGetMigMode"}, follows: migPending,
		read: func(d nvml.Device) (uint32, nvml.Return) {
			mode, _, code := d.GetMigMode()
			return uint32(mode), code //nolint:gosec // it is 0 or 1
		}},
}

// readSettings reads how all GPUs are set.
func (s *session) readSettings() (settingsOf, error) {
	if s.err != nil {
		return nil, s.err
	}
	count, code := s.library.DeviceGetCount()
	if code != nvml.SUCCESS {
		return nil, fmt.Errorf("counting GPUs: NVML error %d", code)
	}
	all := settingsOf{}
	for index := range count {
		d, code := s.library.DeviceGetHandleByIndex(index)
		if code != nvml.SUCCESS {
			continue // it says nothing
		}
		uuid, code := d.GetUUID()
		if code != nvml.SUCCESS {
			continue
		}
		all[uuid] = map[string]uint32{}
		for _, of := range allSettings {
			if v, ok := s.readSetting(of, d); ok {
				all[uuid][of.name] = v
			}
		}
	}
	return all, nil
}

func (s *session) readSetting(of setting, d nvml.Device) (uint32, bool) {
	for _, symbol := range of.symbols {
		if !s.knows(symbol) {
			return 0, false
		}
	}
	v, code := of.read(d)
	return v, code == nvml.SUCCESS
}

// restore sets GPUs as they are wanted.
func (s *session) restore(wanted settingsOf) (all []Restored, err error) {
	if s.err != nil {
		return nil, s.err
	}
	for uuid, settings := range wanted {
		r := Restored{UUID: uuid}
		if d, code := s.find(uuid); code == nvml.SUCCESS {
			for _, of := range allSettings {
				s.restoreOne(of, d, settings, &r)
			}
		} else {
			r.Why = fmt.Sprintf("a GPU cannot be reached (NVML error %d)", code)
		}
		all = append(all, r)
	}
	return all, nil
}

// restoreOne has a setting be as it is wanted, and reads it back.
func (s *session) restoreOne(of setting, d nvml.Device, wanted map[string]uint32, r *Restored) {
	is, known := s.readSetting(of, d)
	want, remembered := wanted[of.name]
	if !known || !remembered || is == want || r.Wrong != "" || slices.Contains(r.Barred, of.follows) {
		return
	}
	code := nvml.ERROR_NOT_SUPPORTED
	if of.write != nil {
		code = of.write(d, want)
	}
	now, _ := s.readSetting(of, d)
	switch {
	case now == want:
		r.Changed = append(r.Changed, of.name)
	case code == nvml.ERROR_NO_PERMISSION:
		r.Barred = append(r.Barred, of.name)
	default:
		r.Wrong = fmt.Sprintf("its %s is %d instead of %d (NVML error %d)", of.name, now, want, code)
	}
}
